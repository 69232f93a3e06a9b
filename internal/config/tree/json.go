package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// jsonReader builds nodes from JSON tokens.
type jsonReader struct {
	report *Report
	text   string
	dec    *json.Decoder
	lines  counter
	nodes  int
}

// counter turns growing byte offsets into places.
type counter struct {
	text      string
	at, start int // bytes counted; where the line begins
	line      int
}

func (c *counter) place(offset int) Place {
	for {
		i := strings.IndexByte(c.text[c.at:offset], '\n')
		if i < 0 {
			break
		}
		c.at += i + 1
		c.start = c.at
		c.line++
	}
	c.at = offset
	return Place{c.line + 1, 1 + utf8.RuneCountInString(c.text[c.start:offset])}
}

func parseJSON(r *Report, text string) *Node {
	j := &jsonReader{report: r, text: text, dec: json.NewDecoder(strings.NewReader(text)), lines: counter{text: text}}
	j.dec.UseNumber()
	n, err := j.value("", 0)
	if err == nil {
		next := j.start(int(j.dec.InputOffset()))
		if _, err = j.dec.Token(); err == nil {
			r.Add(placeOf(text[:next]), "", Error, "more than one JSON value", "keep one object in the file")
			return nil
		} else if errors.Is(err, io.EOF) {
			return n
		}
	}
	if !errors.Is(err, errRefused) {
		at, problem := j.explain(err)
		r.Add(placeOf(text[:at]), "", Error, problem, "correct the JSON here or just before")
	}
	return nil
}

// errRefused stops reading after a finding that says why.
var errRefused = errors.New("refused")

// explain says where the decoder stopped, which is at the token behind the last good one,
// and why. The offset of its own errors counts from somewhere else.
func (j *jsonReader) explain(err error) (at int, problem string) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return len(strings.TrimRight(j.text, " \t\r\n")), "the JSON ends too early"
	}
	return j.start(int(j.dec.InputOffset())), "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")
}

// start skips what separates tokens.
func (j *jsonReader) start(at int) int {
	for at < len(j.text) && strings.IndexByte(" \t\r\n,:", j.text[at]) >= 0 {
		at++
	}
	return at
}

func (j *jsonReader) value(path string, depth int) (*Node, error) {
	at := j.lines.place(j.start(int(j.dec.InputOffset())))
	if j.nodes++; depth > MaxDepth || j.nodes > MaxNodes {
		j.report.Add(at, "", Error, fmt.Sprintf("nested deeper than %d or more than %d values", MaxDepth, MaxNodes), "simplify the document")
		return nil, errRefused
	}
	tok, err := j.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &Node{Place: at, plain: true}
	switch t := tok.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case string:
		n.Kind, n.Text, n.plain = String, t, false
	case json.Delim:
		if t == '[' {
			n.Kind = List
			err = j.list(n, path, depth)
		} else {
			n.Kind = Map
			err = j.object(n, path, depth)
		}
	}
	return n, err
}

func (j *jsonReader) list(n *Node, path string, depth int) error {
	for j.dec.More() {
		item, err := j.value(index(path, len(n.Items)), depth+1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
		if len(n.Items) > MaxEntries {
			return j.tooMany(path)
		}
	}
	_, err := j.dec.Token()
	return err
}

func (j *jsonReader) object(n *Node, path string, depth int) error {
	seen := map[string]Place{}
	for j.dec.More() {
		at := j.lines.place(j.start(int(j.dec.InputOffset())))
		tok, err := j.dec.Token()
		if err != nil {
			return err
		}
		key, _ := tok.(string)
		v, err := j.value(join(path, key), depth+1)
		if err != nil {
			return err
		}
		n.add(j.report, path, Field{key, at, v}, seen)
		if len(n.Fields) > MaxEntries {
			return j.tooMany(path)
		}
	}
	_, err := j.dec.Token()
	return err
}

func (j *jsonReader) tooMany(path string) error {
	j.report.Add(j.lines.place(int(j.dec.InputOffset())), path, Error, fmt.Sprintf("more than %d entries in one list or map", MaxEntries), "split the document")
	return errRefused
}

// add appends a field, or reports that its key is there already and keeps the first.
func (n *Node) add(r *Report, path string, f Field, seen map[string]Place) {
	if first, ok := seen[f.Key]; ok {
		r.Add(f.Place, join(path, f.Key), Error, fmt.Sprintf("the key %s is already on line %d", quote(f.Key), first.Line), "remove one of the two")
		return
	}
	seen[f.Key] = f.Place
	n.Fields = append(n.Fields, f)
}
