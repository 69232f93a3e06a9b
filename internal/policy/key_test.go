package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func keyOf(names ...string) Key {
	var k Key
	for _, n := range names {
		k.Parts = append(k.Parts, Variable(n))
	}
	return k
}

func TestKeys(t *testing.T) {
	r := request{"a": "x", "b": "yz", "e": ""}
	for _, c := range []struct {
		key  Key
		want string
		ok   bool
	}{
		{Key{}, "", true},
		{keyOf("a"), "x", true},
		{keyOf("a", "b"), "1:x2:yz", true},
		{keyOf("a", "missing"), "1:x0:", true},
		{keyOf("missing"), "", false},
		{keyOf("missing", "gone"), "0:0:", false},
		{keyOf("e"), "", true},
		{Key{Parts: []Template{Literal("all")}}, "all", true},
		{Key{Parts: []Template{Literal("all"), Variable("missing")}}, "3:all0:", false},
	} {
		got, ok := c.key.Eval(r)
		if got != c.want || ok != c.ok {
			t.Errorf("%v: %q %v, want %q %v", c.key, got, ok, c.want, c.ok)
		}
		if buf, ok := c.key.Append([]byte("-"), r); string(buf) != "-"+c.want || ok != c.ok {
			t.Errorf("%v: Append gives %q %v", c.key, buf, ok)
		}
	}
}

// TestKeysNeverCollide draws two requests whose values are near each other and looks for
// equal keys of different values.
func TestKeysNeverCollide(t *testing.T) {
	piece := rapid.SampledFrom([]string{"", "a", "b", "1", ":", "1:a", "0:", "2:", "\xff", "\xff\xfe", strings.Repeat("a", 511), strings.Repeat("a", 512), strings.Repeat("b", 600)})
	value := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, MaxParts).Draw(t, "parts")
		var k Key
		one, two := request{}, request{}
		equal := true
		for i := range n {
			name := fmt.Sprintf("v%d", i)
			k.Parts = append(k.Parts, Variable(name))
			one[name], two[name] = value.Draw(t, "one"), value.Draw(t, "two")
			equal = equal && one[name] == two[name]
		}
		a, _ := k.Eval(one)
		b, _ := k.Eval(two)
		if (a == b) != equal {
			t.Fatalf("values equal: %v, keys %.80q and %.80q", equal, a, b)
		}
		if len(a) > MaxKey || len(b) > MaxKey {
			t.Fatalf("keys of %d and %d bytes", len(a), len(b))
		}
	})
}

// TestKeyOfHash makes a value that looks like the hash of a long one: it must not reach
// the long one's counter.
func TestKeyOfHash(t *testing.T) {
	k := keyOf("a")
	long, _ := k.Eval(request{"a": strings.Repeat("x", MaxKey+1)})
	forged, _ := k.Eval(request{"a": long})
	if forged == long {
		t.Fatalf("a value equal to the key %q has the same key", long)
	}
}

func TestKeyAllocations(t *testing.T) {
	k, r := keyOf("a"), request{"a": "10.0.0.1"}
	if n := testing.AllocsPerRun(100, func() { k.Eval(r) }); n != 0 {
		t.Errorf("a key of one variable allocates %v times", n)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a", "b")
	f.Add("", "1:b", "0:", "b")
	f.Add("\xff", "", "", "\xff")
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		k := keyOf("a", "b")
		one, _ := k.Eval(request{"a": a1, "b": b1})
		two, _ := k.Eval(request{"a": a2, "b": b2})
		if (one == two) != (a1 == a2 && b1 == b2) {
			t.Fatalf("%q %q and %q %q make %q and %q", a1, b1, a2, b2, one, two)
		}
	})
}

func BenchmarkKey(b *testing.B) {
	r := request{"a": "10.0.0.1", "b": "alice"}
	for _, k := range []Key{keyOf("a"), keyOf("a", "b")} {
		b.Run(k.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				k.Eval(r)
			}
		})
	}
}
