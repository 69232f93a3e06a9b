package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Object reads a map whose keys are known. Every key asked for is known; Done reports
// the others.
type Object struct {
	Value
	asked     []string
	otherwise map[string]string // hints for keys that are called otherwise here
}

// Object reads a map with known keys.
func (v Value) Object() (*Object, bool) {
	if v.Node.Kind != Map {
		v.wrong("a map", "write key: value below it, or {key: value}")
		return nil, false
	}
	return &Object{Value: v}, true
}

// Otherwise says what to write instead of keys that other configurations have.
func (o *Object) Otherwise(hints map[string]string) { o.otherwise = hints }

// Get is the value under key, false if there is none. Keys written null are there.
func (o *Object) Get(key string) (Value, bool) {
	o.asked = append(o.asked, key)
	pattern := key
	if o.pattern != "" {
		pattern = o.pattern + "." + key
	}
	o.report.know(pattern)
	n := o.Node.Field(key)
	if n == nil {
		return Value{}, false
	}
	return Value{n, join(o.Path, key), o.report, pattern}, true
}

// Need is Get for a key that has to be there; hint says what to write.
func (o *Object) Need(key, hint string) (Value, bool) {
	v, ok := o.Get(key)
	if !ok {
		o.Fail(key+" is missing", hint)
	}
	return v, ok
}

// Has reports whether a key is there, without asking for it.
func (o *Object) Has(key string) bool { return o.Node.Field(key) != nil }

// Skip makes keys known that have no effect here.
func (o *Object) Skip(keys ...string) {
	for _, key := range keys {
		o.Get(key)
	}
}

// Refuse reports keys that are known elsewhere and not supported here; why says so.
func (o *Object) Refuse(why, hint string, keys ...string) {
	for _, key := range keys {
		if f, ok := o.take(key); ok {
			o.key(f).Unsupported(key+" "+why, hint)
		}
	}
}

// Done reports keys that nobody asked for.
func (o *Object) Done() {
	for _, f := range o.Node.Fields {
		if slices.Contains(o.asked, f.Key) || len(o.report.findings) > MaxFindings {
			continue
		}
		known := slices.Clone(o.asked)
		slices.Sort(known)
		hint := "remove it; known are " + strings.Join(slices.Compact(known), ", ")
		if near := Nearest(f.Key, o.asked); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		if h, ok := o.otherwise[f.Key]; ok {
			hint = h
		}
		o.key(f).Fail("unknown key "+quote(f.Key), hint)
	}
}

// take is the field under key, which counts as asked for without becoming a known one.
func (o *Object) take(key string) (Field, bool) {
	for _, f := range o.Node.Fields {
		if f.Key == key {
			o.asked = append(o.asked, key)
			return f, true
		}
	}
	return Field{}, false
}

// key is a field's value at the place of its key.
func (o *Object) key(f Field) Value {
	n := *f.Value
	n.Place = f.Place
	return Value{&n, join(o.Path, f.Key), o.report, ""}
}

// Entry is one pair of a map whose keys are names.
type Entry struct {
	Name string
	Key  Value // stands where the name is written
	Value
}

// Entries reads a map whose keys are names, at most limit of them.
func (v Value) Entries(limit int) ([]Entry, bool) {
	if v.Node.Kind != Map {
		v.wrong("a map", "write name: value below it, or {name: value}")
		return nil, false
	}
	if len(v.Node.Fields) > limit {
		v.Fail(fmt.Sprintf("%d entries", len(v.Node.Fields)), fmt.Sprintf("use at most %d", limit))
		return nil, false
	}
	pattern := "*"
	if v.pattern != "" {
		pattern = v.pattern + ".*"
	}
	out := make([]Entry, len(v.Node.Fields))
	for i, f := range v.Node.Fields {
		path := join(v.Path, f.Key)
		name := &Node{Kind: String, Place: f.Place, Text: f.Key}
		out[i] = Entry{f.Key, Value{name, path, v.report, pattern}, Value{f.Value, path, v.report, pattern}}
	}
	return out, true
}

// At is the value under key, or the object itself under that path where the key is not
// written: the place of a problem.
func (o *Object) At(key string) Value {
	n := o.Node.Field(key)
	if n == nil {
		n = o.Node
	}
	return Value{n, join(o.Path, key), o.report, ""}
}

// Asked reports whether a key was asked for.
func (o *Object) Asked(key string) bool { return slices.Contains(o.asked, key) }

// Below are the maps in the list under key, whatever else is wrong with it.
func (o *Object) Below(key string) []*Object {
	var out []*Object
	list := o.At(key)
	for i, n := range list.Node.Items {
		if n.Kind == Map {
			out = append(out, &Object{Value: Value{n, index(list.Path, i), o.report, ""}})
		}
	}
	return out
}
