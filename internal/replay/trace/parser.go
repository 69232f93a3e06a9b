package trace

import (
	"bytes"
	"strconv"
)

func indexNewline(b []byte) int { return bytes.IndexByte(b, '\n') }

// parser reads lines of one layout. It is not safe for concurrent use; each worker has
// its own.
type parser struct {
	layout *Layout
	values [][]byte // by index into Layout.fields; nil where the line has none
	text   []byte   // values that are not a piece of the line
}

func newParser(l *Layout) *parser {
	return &parser{layout: l, values: make([][]byte, len(l.fields))}
}

// The first two fields of every layout.
const (
	timeField = 0
	costField = 1
)

// line reads one line into e and appends its keys to b.
func (p *parser) line(line []byte, e *Entry, b *Block) Fault {
	clear(p.values)
	p.text = p.text[:0]
	var f Fault
	switch p.layout.Format {
	case CSV:
		f = p.csv(line)
	case JSON:
		f = p.json(line)
	case Log, Auto:
		f = p.log(line)
	}
	if f != Fine {
		return f
	}
	t := p.values[timeField]
	if t == nil {
		return NoTime
	}
	var ok bool
	if e.At, ok = parseTime(t, p.layout.unit); !ok {
		return BadTime
	}
	if c := p.values[costField]; c != nil {
		if e.Cost, ok = parseCost(c); !ok {
			return BadCost
		}
	}
	for _, key := range p.layout.keys {
		for _, i := range key {
			if p.values[i] == nil {
				return NoKey
			}
		}
	}
	for _, key := range p.layout.keys {
		b.Keys = append(b.Keys, p.key(key, line, b))
	}
	return Fine
}

// key joins the values of a key. A single one is taken as it is; of several each is
// preceded by its length, so that they cannot run into each other.
func (p *parser) key(fields []int, line []byte, b *Block) []byte {
	switch len(fields) {
	case 0:
		return nil
	case 1:
		v := p.values[fields[0]]
		if within(v, line) {
			return v
		}
	}
	start := len(b.arena)
	for _, i := range fields {
		if len(fields) > 1 {
			b.arena = strconv.AppendInt(b.arena, int64(len(p.values[i])), 10)
			b.arena = append(b.arena, ':')
		}
		b.arena = append(b.arena, p.values[i]...)
	}
	// A grown arena leaves earlier keys on the old one, where they stay valid.
	return b.arena[start:len(b.arena):len(b.arena)]
}

// within reports whether v is a piece of line and not of the parser's own text.
func within(v, line []byte) bool {
	if len(v) == 0 {
		return true
	}
	// Both slices of one array end at the same last element of their capacity.
	return cap(v) > 0 && cap(line) > 0 && &v[:cap(v)][cap(v)-1] == &line[:cap(line)][cap(line)-1]
}

func parseCost(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= 1<<53-1
}

// csv reads comma-separated fields, quoted where they begin with a quote.
func (p *parser) csv(line []byte) Fault {
	columns := p.layout.columns
	for col := 0; ; col++ {
		var v []byte
		end := bytes.IndexByte(line, ',')
		if len(line) > 0 && line[0] == '"' {
			var f Fault
			if v, end, f = p.quoted(line); f != Fine {
				return f
			}
		} else if end >= 0 {
			v = line[:end]
		} else {
			v = line
		}
		if col < len(columns) && columns[col] >= 0 {
			p.values[columns[col]] = v
		}
		if col+1 >= len(columns) {
			return Fine
		}
		if end < 0 || end >= len(line) {
			if col < p.layout.needed {
				return FewColumns
			}
			return Fine
		}
		line = line[end+1:]
	}
}

// quoted reads the field that line begins with; end is where the comma after it stands,
// or -1.
func (p *parser) quoted(line []byte) (v []byte, end int, f Fault) {
	i := bytes.IndexByte(line[1:], '"') + 1
	if i == 0 {
		return nil, 0, BadQuote
	}
	v = line[1:i]
	if i+1 < len(line) && line[i+1] == '"' {
		start := len(p.text)
		for i = 1; ; i++ {
			if i >= len(line) {
				return nil, 0, BadQuote
			}
			if line[i] == '"' {
				if i+1 >= len(line) || line[i+1] != '"' {
					break
				}
				i++
			}
			p.text = append(p.text, line[i])
		}
		v = p.text[start:]
	}
	if i+1 == len(line) {
		return v, -1, Fine
	}
	if line[i+1] != ',' {
		return nil, 0, BadQuote
	}
	return v, i + 1, Fine
}
