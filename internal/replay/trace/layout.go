package trace

import (
	"fmt"
	"slices"
	"strings"
)

// Choice says which fields of a record count. The zero value takes them by their names.
type Choice struct {
	Time, Cost string     // empty: found by name
	Unit       Unit       // of times that are numbers
	Keys       [][]string // one key per element, of one or more fields joined; nil: Shape.DefaultKey
}

// Layout is how to read a trace. Immutable.
type Layout struct {
	Format Format
	Keys   [][]string // names of the fields of each key

	fields  []string // wanted: time, cost, then those of keys
	columns []int    // CSV, Log: index into fields of each column; -1 for none
	needed  int      // CSV: the last column that a line must have
	keys    [][]int  // indices into fields
	skip    int64    // lines that are not records
	unit    Unit
}

// Layout joins a choice of fields to the shape of a trace.
func (s *Shape) Layout(c Choice) (*Layout, error) {
	l := &Layout{Format: s.Format, Keys: c.Keys, skip: s.header, unit: c.Unit}
	if c.Time == "" {
		if c.Time, _ = named(s.Names, timeNames); c.Time == "" {
			return nil, fmt.Errorf("trace: no field has a name for a time such as %q; there are %s; choose one with --time", "time", s.list())
		}
	}
	if c.Cost == "" {
		c.Cost, _ = named(s.Names, costNames)
	} else if err := s.must(c.Cost); err != nil {
		return nil, err
	}
	if err := s.must(c.Time); err != nil {
		return nil, err
	}
	if c.Keys == nil {
		name, ok := s.DefaultKey()
		if !ok {
			return nil, fmt.Errorf("trace: no field has a name for a key such as %q; there are %s; choose one with --key", "key", s.list())
		}
		l.Keys = [][]string{{name}}
	}
	l.fields = []string{c.Time, c.Cost}
	for _, key := range l.Keys {
		var index []int
		for _, name := range key {
			if err := s.must(name); err != nil {
				return nil, err
			}
			i := slices.Index(l.fields, name)
			if i < 0 {
				i = len(l.fields)
				l.fields = append(l.fields, name)
			}
			index = append(index, i)
		}
		l.keys = append(l.keys, index)
	}
	l.place(s)
	return l, nil
}

// place finds the columns of the fields. A cost may be missing at the end of a line.
func (l *Layout) place(s *Shape) {
	if s.Format == JSON {
		return
	}
	l.columns = make([]int, len(s.Names))
	last := 0
	for i, name := range s.Names {
		l.columns[i] = -1
		if f := slices.Index(l.fields, name); f >= 0 && name != "" {
			l.columns[i] = f
			last = i
			if f != costField {
				l.needed = i
			}
		}
	}
	if s.Format == CSV {
		l.columns = l.columns[:last+1]
	}
}

// field is the index of a wanted field, or -1.
func (l *Layout) field(name []byte) int {
	for i, f := range l.fields {
		if string(name) == f && (i != costField || f != "") {
			return i
		}
	}
	return -1
}

func (s *Shape) must(name string) error {
	if s.Has(name) {
		return nil
	}
	return fmt.Errorf("trace: there is no field %q; there are %s", name, s.list())
}

func (s *Shape) list() string {
	const most = 20
	names := s.Names
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(s.Names)-most)
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%.40q", n)
	}
	return strings.Join(quoted, ", ") + more
}
