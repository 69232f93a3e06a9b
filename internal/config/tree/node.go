package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a node holds.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// Place is a position in a file, from 1; the column counts characters.
type Place struct{ Line, Col int }

// Node is one value of a document.
type Node struct {
	Kind   Kind
	Place  Place
	Text   string // scalars: the value; numbers as written
	Items  []*Node
	Fields []Field

	plain bool   // a scalar without quotes
	shown string // what messages show instead of a value that is nobody's business
	unset bool   // a variable of the environment that it names is not set
	size  int    // nodes in the tree below, aliases expanded
}

// Field is one key of a map with its value.
type Field struct {
	Key   string
	Place Place
	Value *Node
}

// Field is the value under key, nil if there is none.
func (n *Node) Field(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Key == key {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Bounds of a document. Nodes are counted with aliases expanded.
const (
	MaxBytes   = 4 << 20
	MaxDepth   = 32
	MaxNodes   = 1 << 20
	MaxEntries = 1 << 14 // of one list or map
)

// describe names what a node holds, for messages.
func (n *Node) describe() string {
	switch n.Kind {
	case Null:
		return "nothing"
	case Bool, Number:
		return n.show()
	case String:
		return "the text " + quote(n.show())
	case List:
		return "a list"
	case Map:
		return "a map"
	}
	return "something else"
}

// likeNumber reports whether the node is text that YAML would call a number if it were
// written or sized otherwise, such as 1e3.
func (n *Node) likeNumber() bool {
	return n.Kind == String && n.plain && n.Text != "" && strings.Trim(n.Text, "+-0123456789.e") == ""
}

func (n *Node) show() string {
	if n.shown != "" {
		return n.shown
	}
	return n.Text
}

// Is reports whether the node is that text.
func (n *Node) Is(text string) bool { return n != nil && n.Kind == String && n.Text == text }

// Float is a number in sensible range; false for anything else.
func (n *Node) Float() (float64, bool) {
	if n == nil || n.Kind != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	return f, err == nil && f >= -MaxInt && f <= MaxInt
}

// Canonical is the content as text: equal for equal content, whatever the order of keys
// and the style of writing.
func (n *Node) Canonical() string {
	var b strings.Builder
	n.canonical(&b)
	return b.String()
}

func (n *Node) canonical(b *strings.Builder) {
	switch n.Kind {
	case Null, Bool, Number, String:
		fmt.Fprintf(b, "%d%q", n.Kind, n.Text)
	case List:
		b.WriteByte('[')
		for _, item := range n.Items {
			item.canonical(b)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case Map:
		fields := slices.SortedFunc(slices.Values(n.Fields), func(x, y Field) int { return strings.Compare(x.Key, y.Key) })
		b.WriteByte('{')
		for _, f := range fields {
			fmt.Fprintf(b, "%q:", f.Key)
			f.Value.canonical(b)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	}
}
