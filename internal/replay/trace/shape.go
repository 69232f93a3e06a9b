package trace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Format is how the records of a trace are written.
type Format uint8

// The formats.
const (
	Auto Format = iota
	CSV         // time,key,cost, or other columns named by a header
	JSON        // one object a line
	Log         // common or combined access log
)

var formatNames = [...]string{Auto: "auto", CSV: "csv", JSON: "json", Log: "log"}

func (f Format) String() string { return formatNames[f] }

// ParseFormat is the inverse of String.
func ParseFormat(s string) (Format, error) {
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("trace: unknown format %q; use auto, csv, json or log", s)
}

// Shape is what the beginning of a trace shows.
type Shape struct {
	Format Format
	Names  []string // of the fields that a record has
	header int64    // lines up to and with the header, 0 for none
}

// The names under which fields are found if nobody says.
var (
	timeNames = []string{"time", "timestamp", "ts", "@timestamp", "t", "datetime", "time_local", "time_iso8601"}
	keyNames  = []string{"key", "client", "client_id", "remote_addr", "client_ip", "ip", "user", "user_id"}
	costNames = []string{"cost", "units"}
)

const (
	headLines = 32  // looked at to find the format
	maxNames  = 256 // fields of a record
)

// Look finds the format of a trace from its beginning, unless it is given, and the names
// of its fields.
func Look(head []byte, format Format) (*Shape, error) {
	lines := firstLines(head)
	if len(lines) == 0 {
		return nil, errors.New("trace: the file is empty")
	}
	if format == Auto {
		format = guess(lines)
	}
	switch format {
	case JSON:
		return lookJSON(lines)
	case Log:
		return &Shape{Format: Log, Names: logNames[:]}, nil
	case CSV:
		return lookCSV(lines)
	case Auto:
	}
	return nil, fmt.Errorf("trace: neither CSV, JSON lines nor an access log: %s; say which with --format", quote(lines[0].text))
}

type headLine struct {
	text   []byte
	number int64 // from 1
}

// firstLines are the first lines that are not empty.
func firstLines(head []byte) []headLine {
	var lines []headLine
	for n := int64(1); len(head) > 0 && len(lines) < headLines; n++ {
		line := head
		if i := indexNewline(head); i >= 0 {
			line, head = head[:i], head[i+1:]
		} else {
			head = nil
		}
		if line = bytes.TrimRight(line, "\r"); !blank(line) {
			lines = append(lines, headLine{line, n})
		}
	}
	return lines
}

// guess is the format that most lines have. Broken ones do not mislead it.
func guess(lines []headLine) Format {
	if name, _ := named(columnsOf(lines[0].text), timeNames); name != "" {
		return CSV
	}
	var votes [Log + 1]int
	for _, l := range lines {
		var v [logFields][]byte
		first, _, _ := cutByte(l.text, ',')
		_, isTime := parseTime(bytes.Trim(first, `"`), AutoUnit)
		switch {
		case l.text[0] == '{':
			votes[JSON]++
		case splitLog(l.text, &v):
			votes[Log]++
		case isTime:
			votes[CSV]++
		}
	}
	best := Auto
	for f := CSV; f <= Log; f++ {
		if votes[f] > votes[best] {
			best = f
		}
	}
	return best
}

// columnsOf cuts a line of CSV into all its fields.
func columnsOf(line []byte) []string {
	l := &Layout{Format: CSV}
	for i := range bytes.Count(line, []byte{','}) + 1 {
		if i == maxNames {
			break
		}
		l.columns = append(l.columns, i)
		l.fields = append(l.fields, "")
	}
	p := newParser(l)
	if p.csv(line) != Fine {
		return nil
	}
	var names []string
	for _, v := range p.values {
		if v != nil {
			names = append(names, strings.TrimSpace(string(v)))
		}
	}
	return names
}

func lookCSV(lines []headLine) (*Shape, error) {
	first, _, _ := cutByte(lines[0].text, ',')
	if _, ok := parseTime(bytes.Trim(first, `"`), AutoUnit); ok {
		return &Shape{Format: CSV, Names: []string{"time", "key", "cost"}}, nil
	}
	names := columnsOf(lines[0].text)
	if len(names) < 2 && len(lines) > 1 {
		// A broken first line in a file without a header.
		return lookCSV(lines[1:])
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, fmt.Errorf("trace: two columns are called %q in the header, line %d", n, lines[0].number)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("trace: line %d is neither a header nor a record: %s", lines[0].number, quote(lines[0].text))
	}
	if name, _ := named(names, timeNames); name == "" && len(lines) > 1 {
		// No header names its time column like this: take it for a broken record if the
		// next line is a whole one.
		if s, err := lookCSV(lines[1:]); err == nil && s.header == 0 {
			return s, nil
		}
	}
	return &Shape{Format: CSV, Names: names, header: lines[0].number}, nil
}

func lookJSON(lines []headLine) (*Shape, error) {
	s := &Shape{Format: JSON}
	for _, l := range lines {
		for _, n := range membersOf(l.text) {
			if !slices.Contains(s.Names, n) && len(s.Names) < maxNames {
				s.Names = append(s.Names, n)
			}
		}
	}
	if len(s.Names) == 0 {
		return nil, fmt.Errorf("trace: line %d is not a JSON object with fields: %s", lines[0].number, quote(lines[0].text))
	}
	return s, nil
}

// membersOf are the names in an object, those before the first mistake if it has one.
func membersOf(line []byte) []string {
	var names []string
	s, p := scanner{b: line}, newParser(&Layout{})
	s.space()
	if !s.eat('{') {
		return nil
	}
	for {
		s.space()
		name, ok := s.text(p)
		if s.space(); !ok || !s.eat(':') {
			return names
		}
		names = append(names, string(name))
		if s.space(); !s.skip(0) {
			return names
		}
		if s.space(); !s.eat(',') {
			return names
		}
	}
}

// named is the first of the candidates that is among names, letter case aside.
func named(names, candidates []string) (string, bool) {
	for _, c := range candidates {
		for _, n := range names {
			if strings.EqualFold(n, c) {
				return n, true
			}
		}
	}
	return "", false
}

// Has reports whether records have a field.
func (s *Shape) Has(name string) bool { return slices.Contains(s.Names, name) }

// DefaultKey is the field that requests are counted by if nobody says; false if no field
// has a name that says so.
func (s *Shape) DefaultKey() (string, bool) { return named(s.Names, keyNames) }

// quote shows the beginning of a line.
func quote(line []byte) string {
	const most = 60
	if len(line) > most {
		return fmt.Sprintf("%q...", line[:most])
	}
	return fmt.Sprintf("%q", line)
}
