package tree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlReader turns the parser's tree into nodes, aliases and merge keys resolved.
type yamlReader struct {
	report  *Report
	anchors map[string]*Node // nil while the anchored value is being read
	total   int
}

func parseYAML(r *Report, text string) (n *Node) {
	defer func() {
		// The parser is not ours and its input is anybody's: a panic in it is a
		// document that cannot be read.
		if p := recover(); p != nil {
			n = nil
			r.Add(Place{}, "", Error, fmt.Sprintf("the YAML parser gave up: %.200v", p), "write the document in a simpler way, or as JSON")
		}
	}()
	tokens := lexer.Tokenize(text)
	if t, problem, hint := measure(tokens); t != nil {
		r.Add(at(t), "", Error, problem, hint)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		p, problem := explainYAML(err)
		r.Add(p, "", Error, "not YAML: "+problem, "correct the line, or the indentation around it")
		return nil
	}
	var body ast.Node
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			r.Add(at(d.Body.GetToken()), "", Error, "a second document", "keep one document in the file")
			return nil
		}
		body = d.Body
	}
	if body == nil {
		r.Add(Place{}, "", Error, "the file holds only comments", "write at least one limit or route")
		return nil
	}
	y := &yamlReader{report: r, anchors: map[string]*Node{}}
	n, err = y.read(body, "", 0)
	if err != nil {
		return nil
	}
	return n
}

func explainYAML(err error) (Place, string) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		return at(syntax.GetToken()), syntax.GetMessage()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return Place{}, first
}

func at(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{}
	}
	return Place{t.Position.Line, t.Position.Column}
}

// measure refuses documents whose size or depth the parser cannot bear: it recurses, and
// takes time quadratic in the entries of one map. So this is known before it starts. It
// gives the token at fault, nil if there is none.
func measure(tokens token.Tokens) (at *token.Token, problem, hint string) {
	if len(tokens) > MaxNodes {
		return tokens[MaxNodes], fmt.Sprintf("more than %d tokens", MaxNodes), "split the document"
	}
	type collection struct{ column, entries int } // column 0: in brackets
	var open []collection
	for i, t := range tokens {
		flow := len(open) > 0 && open[len(open)-1].column == 0
		switch {
		case t.Type == token.MappingStartType, t.Type == token.SequenceStartType:
			open = append(open, collection{})
		case t.Type == token.MappingEndType, t.Type == token.SequenceEndType:
			if flow {
				open = open[:len(open)-1]
			}
		case flow && t.Type == token.CollectEntryType:
			open[len(open)-1].entries++
		case !flow && t.Position != nil && begins(tokens, i):
			for len(open) > 0 && open[len(open)-1].column > t.Position.Column {
				open = open[:len(open)-1]
			}
			if len(open) == 0 || open[len(open)-1].column != t.Position.Column {
				open = append(open, collection{column: t.Position.Column})
			}
			open[len(open)-1].entries++
		}
		// A list of maps opens two collections for each level of nodes at most.
		if len(open) > 2*MaxDepth {
			return t, fmt.Sprintf("nested deeper than %d", MaxDepth), "simplify the document"
		}
		if len(open) > 0 && open[len(open)-1].entries > MaxEntries {
			return t, fmt.Sprintf("more than %d entries in one list or map", MaxEntries), "split the document"
		}
	}
	return nil, "", ""
}

// begins reports whether an entry of a block begins with token i.
func begins(tokens token.Tokens, i int) bool {
	if kind := tokens[i].Type; kind == token.SequenceEntryType || kind == token.MappingKeyType {
		return true
	}
	return i+1 < len(tokens) && tokens[i+1].Type == token.MappingValueType
}

func (y *yamlReader) refuse(n ast.Node, path, problem, hint string) error {
	y.report.Add(at(n.GetToken()), path, Error, problem, hint)
	return errRefused
}

// grow counts nodes, those that an alias repeats included.
func (y *yamlReader) grow(n ast.Node, path string, by int) error {
	if y.total += by; y.total > MaxNodes {
		return y.refuse(n, path, fmt.Sprintf("more than %d values once aliases are expanded", MaxNodes), "repeat less through anchors")
	}
	return nil
}

func (y *yamlReader) read(a ast.Node, path string, depth int) (*Node, error) {
	if depth > MaxDepth {
		return nil, y.refuse(a, path, fmt.Sprintf("nested deeper than %d", MaxDepth), "simplify the document")
	}
	n := &Node{Place: at(a.GetToken()), plain: true}
	before := y.total
	if err := y.grow(a, path, 1); err != nil {
		return nil, err
	}
	var err error
	switch a := a.(type) {
	case *ast.AnchorNode:
		return y.anchor(a, path, depth)
	case *ast.AliasNode:
		return y.alias(a, path)
	case *ast.TagNode:
		return nil, y.refuse(a, path, fmt.Sprintf("the tag %s", quote(a.Start.Value)), "remove it: values have the type they are written in")
	case *ast.MappingNode:
		n.Kind = Map
		if len(a.Values) > 0 && !a.IsFlowStyle {
			n.Place = at(a.Values[0].Key.GetToken())
		}
		err = y.mapping(n, a.Values, path, depth)
	case *ast.MappingValueNode:
		n.Kind = Map
		n.Place = at(a.Key.GetToken())
		err = y.mapping(n, []*ast.MappingValueNode{a}, path, depth)
	case *ast.SequenceNode:
		n.Kind = List
		for i, v := range a.Values {
			item, e := y.read(v, index(path, i), depth+1)
			if e != nil {
				return nil, e
			}
			n.Items = append(n.Items, item)
		}
	default:
		err = y.scalar(n, a, path)
	}
	n.size = y.total - before
	return n, err
}

func (y *yamlReader) scalar(n *Node, a ast.Node, path string) error {
	t := a.GetToken()
	switch a := a.(type) {
	case *ast.NullNode:
		n.Kind = Null
	case *ast.BoolNode:
		n.Kind, n.Text = Bool, strings.ToLower(t.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.NanNode, *ast.InfinityNode:
		n.Kind, n.Text = Number, t.Value
	case *ast.StringNode:
		n.Kind, n.Text = String, a.Value
		n.plain = t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
	case *ast.LiteralNode:
		n.Kind, n.Text, n.plain = String, a.Value.Value, false
	default:
		return y.refuse(a, path, fmt.Sprintf("a %v does not belong here", a.Type()), "write a plain value")
	}
	return nil
}

func (y *yamlReader) anchor(a *ast.AnchorNode, path string, depth int) (*Node, error) {
	name := a.Name.GetToken().Value
	y.anchors[name] = nil
	n, err := y.read(a.Value, path, depth)
	y.anchors[name] = n
	return n, err
}

func (y *yamlReader) alias(a *ast.AliasNode, path string) (*Node, error) {
	name := a.Value.GetToken().Value
	n, known := y.anchors[name]
	switch {
	case !known:
		return nil, y.refuse(a, path, fmt.Sprintf("the alias *%s has no anchor before it", name), fmt.Sprintf("write &%s in front of the value it repeats", name))
	case n == nil:
		return nil, y.refuse(a, path, fmt.Sprintf("the alias *%s stands inside the value it repeats", name), "write the value out: it would have no end")
	}
	return n, y.grow(a, path, n.size)
}

func (y *yamlReader) mapping(n *Node, values []*ast.MappingValueNode, path string, depth int) error {
	seen := make(map[string]Place, len(values))
	var merged []*Node
	for _, v := range values {
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			from, err := y.read(v.Value, path, depth+1)
			if err != nil {
				return err
			}
			merged = append(merged, from)
			continue
		}
		t := v.Key.GetToken()
		if _, ok := v.Key.(*ast.MappingKeyNode); ok || t == nil {
			return y.refuse(v, path, "a key written with ?", "write key: value")
		}
		if _, ok := v.Key.(ast.ScalarNode); !ok {
			return y.refuse(v, path, "a key that is not plain text", "write key: value")
		}
		value, err := y.read(v.Value, join(path, t.Value), depth+1)
		if err != nil {
			return err
		}
		n.add(y.report, path, Field{t.Value, at(t), value}, seen)
	}
	for _, from := range merged {
		if err := y.merge(n, from, path, seen); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the fields of a "<<" that the map does not have itself.
func (y *yamlReader) merge(n, from *Node, path string, seen map[string]Place) error {
	switch from.Kind {
	case Map:
		for _, f := range from.Fields {
			if _, ok := seen[f.Key]; !ok {
				seen[f.Key] = f.Place
				n.Fields = append(n.Fields, f)
			}
		}
		return nil
	case List:
		for _, item := range from.Items {
			if err := y.merge(n, item, path, seen); err != nil {
				return err
			}
		}
		return nil
	case Null, Bool, Number, String:
	}
	y.report.Add(from.Place, path, Error, "<< merges "+from.describe(), "give it an alias of a map")
	return errRefused
}
