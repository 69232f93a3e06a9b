package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// row is one entry as text: line, microseconds, cost, keys.
func rows(t testing.TB, in io.Reader, f Format, c Choice) (got []string, broken []Broken, end End) {
	t.Helper()
	r, err := Open(in, f)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Shape.Layout(c)
	if err != nil {
		t.Fatal(err)
	}
	end, err = r.Read(t.Context(), l, func(b *Block, _ int64) error {
		for i := range b.Entries {
			e := &b.Entries[i]
			got = append(got, fmt.Sprintf("%d: %d %d %q", b.Number(e), e.At, e.Cost, b.Keys[i*len(l.Keys):(i+1)*len(l.Keys)]))
		}
		broken = append(broken, b.Broken...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, broken, end
}

func TestFormats(t *testing.T) {
	for _, x := range []struct {
		name, in string
		choice   Choice
		want     []string
		broken   []Broken
	}{
		{name: "csv without header", in: "1,alice\n2,bob,3\n", want: []string{`1: 1000000 1 ["alice"]`, `2: 2000000 3 ["bob"]`}},
		{name: "header in another order, CRLF, BOM, no last newline", in: "\ufeffcost,ts,client\r\n5,1,a\r\n6,2,b",
			want: []string{`2: 1000000 5 ["a"]`, `3: 2000000 6 ["b"]`}},
		{name: "quotes", in: "time,key\n1,\"a,b\"\n2,\"say \"\"hi\"\"\"\n\"3\",\"\"\n4,\"open\n5,\"x\"y\n",
			want:   []string{`2: 1000000 1 ["a,b"]`, `3: 2000000 1 ["say \"hi\""]`, `4: 3000000 1 [""]`},
			broken: []Broken{{5, BadQuote}, {6, BadQuote}}},
		{name: "empty lines count", in: "\n\n1,a\n   \n2,b\n", want: []string{`3: 1000000 1 ["a"]`, `5: 2000000 1 ["b"]`}},
		{name: "broken lines", in: "1,a\nx,a\n2\n3,b,-1\n4,b,1.5\n5,c,9007199254740991\n6,c,9007199254740992\n",
			want:   []string{`1: 1000000 1 ["a"]`, `6: 5000000 9007199254740991 ["c"]`},
			broken: []Broken{{2, BadTime}, {3, FewColumns}, {4, BadCost}, {5, BadCost}, {7, BadCost}}},
		{name: "a broken first line", in: "2026-11-\n2026-11-30T00:00:00Z,a\n2026-11-30T00:00:01Z,a\n",
			want:   []string{`2: 1795996800000000 1 ["a"]`, `3: 1795996801000000 1 ["a"]`},
			broken: []Broken{{1, FewColumns}}},
		{name: "several keys", in: "time,user,path\n1,a,bc\n2,ab,c\n", choice: Choice{Keys: [][]string{{"user", "path"}, {"path"}, nil}},
			want: []string{`2: 1000000 1 ["1:a2:bc" "bc" ""]`, `3: 2000000 1 ["2:ab1:c" "c" ""]`}},
		{name: "json", in: `{"time":"2026-11-30T00:00:00Z","key":"a","cost":2}` + "\n" +
			`{ "extra" : {"x":[1,{"y":"\"}"}],"z":[]} , "key":"\u00e9\n\ud83d\ude00", "time":1.5 }` + "\n" +
			`{"time":2,"cost":null,"key":7}` + "\n" + `{"time":3,"key":"a"` + "\n" + `{"time":3}` + "\n" + `{"key":"a"}` + "\n" + `[]` + "\n" +
			`{"time":3,"key":"a","cost":"x"}` + "\n" + `{"time":3,"key":nope}` + "\n" + `{}` + "\n",
			want:   []string{`1: 1795996800000000 2 ["a"]`, `2: 1500000 1 ["é\n😀"]`, `3: 2000000 1 ["7"]`},
			broken: []Broken{{4, BadJSON}, {5, NoKey}, {6, NoTime}, {7, BadJSON}, {8, BadCost}, {9, BadJSON}, {10, NoTime}}},
		{name: "common log", in: `192.0.2.1 - frank [30/Nov/2026:01:00:00 +0100] "GET /a?b=1 HTTP/1.1" 200 2326` + "\n" +
			`192.0.2.2 - - [30/Nov/2026:00:00:01 +0000] "-" 400 0` + "\n" + `192.0.2.3 - - [30/Nov/2026:00:00` + "\n",
			want:   []string{`1: 1795996800000000 1 ["192.0.2.1"]`, `2: 1795996801000000 1 ["192.0.2.2"]`},
			broken: []Broken{{3, BadLog}}},
		{name: "combined log", choice: Choice{Keys: [][]string{{"remote_user"}, {"request_method", "uri"}, {"http_user_agent"}}},
			in:   `::1 - a b [30/Nov/2026:00:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 12 "http://x/\"y" "Mozilla \"5\" (x)" extra` + "\n",
			want: []string{`1: 1795996800000000 1 ["a b" "3:GET2:/a" "Mozilla \\\"5\\\" (x)"]`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, broken, end := rows(t, strings.NewReader(x.in), Auto, x.choice)
			if fmt.Sprint(got) != fmt.Sprint(x.want) || fmt.Sprint(broken) != fmt.Sprint(x.broken) {
				t.Errorf("got  %s broken %v\nwant %s broken %v", got, broken, x.want, x.broken)
			}
			if lines := int64(strings.Count(strings.TrimSuffix(x.in, "\n"), "\n") + 1); end.Lines != lines {
				t.Errorf("%d lines, want %d", end.Lines, lines)
			}
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, _ = w.Write([]byte(strings.TrimPrefix(x.in, "\ufeff")))
			w.Close()
			if again, _, _ := rows(t, &z, Auto, x.choice); fmt.Sprint(again) != fmt.Sprint(got) {
				t.Errorf("compressed: %s", again)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, x := range []struct {
		in, want string
		format   Format
		choice   Choice
	}{
		{in: "", want: "empty"},
		{in: "\n\n", want: "empty"},
		{in: "hello\nworld\n", want: "neither CSV, JSON lines nor an access log"},
		{in: "a,b\n1,2\n", format: CSV, want: `there is no field "nope"`, choice: Choice{Time: "nope", Keys: [][]string{nil}}},
		{in: "when,who\nx,2\n", format: CSV, want: "choose one with --time"},
		{in: "time,who\n1,2\n", want: "choose one with --key"},
		{in: "time,time\n1,2\n", want: "two columns"},
		{in: "time,key\n1,2\n", want: `there is no field "x"; there are "time", "key"`, choice: Choice{Keys: [][]string{{"x"}}}},
		{in: "time,key\n1,2\n", want: `there is no field "c"`, choice: Choice{Cost: "c"}},
		{in: "[1]\n", format: JSON, want: "not a JSON object"},
	} {
		r, err := Open(strings.NewReader(x.in), x.format)
		if err == nil {
			_, err = r.Shape.Layout(x.choice)
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %s", x.in, err, x.want)
		}
	}
}

// TestBlocks crosses the bounds of blocks: lines are numbered through, one that is longer
// than a block is left out, and the lines around it are read.
func TestBlocks(t *testing.T) {
	var in bytes.Buffer
	const lines = 100_000
	for i := range lines {
		if i == lines/2 {
			in.WriteString("7," + strings.Repeat("x", 3*blockSize) + "\n")
		}
		fmt.Fprintf(&in, "%d,key-%d\n", i, i)
	}
	got, broken, end := rows(t, &in, Auto, Choice{})
	if end.Lines != lines+1 || len(got) != lines {
		t.Fatalf("%d lines, %d entries", end.Lines, len(got))
	}
	if fmt.Sprint(broken) != fmt.Sprint([]Broken{{lines/2 + 1, TooLong}}) {
		t.Errorf("broken: %v", broken)
	}
	for _, i := range []int{0, lines/2 - 1, lines / 2, lines - 1} {
		line := i + 1
		if i >= lines/2 {
			line++
		}
		if want := fmt.Sprintf(`%d: %d 1 ["key-%d"]`, line, i*1_000_000, i); got[i] != want {
			t.Errorf("entry %d: %s, want %s", i, got[i], want)
		}
	}
}

// TestCutShort reads what there is of a compressed input that ends in the middle.
func TestCutShort(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for i := range 200_000 {
		fmt.Fprintf(w, "%d,key-%d\n", i, i*7919%1000)
	}
	w.Close()
	got, _, end := rows(t, bytes.NewReader(z.Bytes()[:z.Len()/2]), Auto, Choice{})
	if end.Damage == nil || len(got) < 1000 || len(got) > 199_000 {
		t.Errorf("%d entries, damage %v", len(got), end.Damage)
	}
}

// TestStop ends a reading in the middle.
func TestStop(t *testing.T) {
	stop := fmt.Errorf("enough")
	r, err := Open(strings.NewReader(strings.Repeat("1,a\n", 2_000_000)), Auto)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := r.Shape.Layout(Choice{})
	blocks := 0
	_, err = r.Read(t.Context(), l, func(*Block, int64) error { blocks++; return stop })
	if !errors.Is(err, stop) || blocks != 1 {
		t.Errorf("%v after %d blocks", err, blocks)
	}
}

// FuzzLines holds the parsers against the standard library where both accept.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		"1,a\n2,\"b\"\"c\"\n", `{"time":1,"key":"a\u0041"}`, "time,key\n1,x\n", "\x1f\x8b\b\x00",
		`h - - [30/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "a"`, "1,a,,,,\n,,\n", `{"time":1,"key":{"a":[]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := Open(bytes.NewReader(in), Auto)
		if err != nil {
			return
		}
		l, err := r.Shape.Layout(Choice{})
		if err != nil {
			return
		}
		lines := bytes.Split(bytes.TrimPrefix(in, []byte("\ufeff")), []byte{'\n'})
		zipped := len(in) > 1 && in[0] == 0x1f && in[1] == 0x8b
		_, err = r.Read(t.Context(), l, func(b *Block, _ int64) error {
			for i := range b.Entries {
				e, key := &b.Entries[i], b.Keys[i]
				if e.At < 0 || e.At > maxMicros || e.Cost < 0 {
					t.Errorf("%+v", e)
				}
				if !zipped {
					agree(t, r.Shape, l, lines[b.Number(e)-1], string(key))
				}
			}
			if int64(len(b.Entries))+b.Faults > b.Lines {
				t.Errorf("%d entries and %d faults in %d lines", len(b.Entries), b.Faults, b.Lines)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func agree(t *testing.T, s *Shape, l *Layout, line []byte, key string) {
	switch s.Format {
	case JSON:
		var m map[string]json.RawMessage
		if json.Unmarshal(line, &m) != nil {
			return
		}
		var want string
		if json.Unmarshal(m[l.Keys[0][0]], &want) == nil && want != key && !strings.Contains(want, "\ufffd") {
			t.Errorf("%s: key %q, want %q", line, key, want)
		}
	case CSV:
		fields, err := csv.NewReader(bytes.NewReader(line)).Read()
		col := indexOf(s.Names, l.Keys[0][0])
		if err == nil && col < len(fields) && fields[col] != key && !bytes.ContainsRune(line, '\r') {
			t.Errorf("%q: key %q, want %q", line, key, fields[col])
		}
	case Auto, Log: // the standard library does not read them
	}
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// TestBlockedInput ends a reading whose input says nothing more.
func TestBlockedInput(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = out.Write(bytes.Repeat([]byte("1,a\n"), blockSize)) }() // and then nothing
	r, err := Open(in, Auto)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := r.Shape.Layout(Choice{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err = r.Read(ctx, l, func(*Block, int64) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}
