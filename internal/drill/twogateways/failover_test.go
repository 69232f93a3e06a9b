package twogateways

import (
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
	"github.com/escapement-io/escapement/redisstore"
)

func TestParseRecord(t *testing.T) {
	for text, want := range map[string]record{
		"1 1700000000000000 499 f 1000000":       {1700000000000000, 499, 0, true},
		"1 1700000000000000 499 77 f 1000000":    {1700000000000000, 499, 0, true},
		"1 1700000000000000 12 7 s 1000000 1000": {1700000000000000, 12, 0, true},
		"1 1700000000000000 3 u 10000000\nD 1 2": {1700000000000000, 3, 0, true},
	} {
		if got, ok := parseRecord(text); !ok || got != want {
			t.Errorf("%q: %+v %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "2 1 1 f 1", "1 1700000000000000 5 r 1000000 7812 128\nbinary", "1 1 1", "1 1700000000000000 5 b 1 2 3 4",
		"1 1700000000000000 400 f 1000000\nMcut off"} {
		if got, ok := parseRecord(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestParseRecordOfALease reads what a Redis has on record of quota that was handed out.
func TestParseRecordOfALease(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s, err := redisstore.Open(redisstore.Config{Addrs: []string{srv.Addr()}, Deadline: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l := escapement.Limit{Name: limitName, Algorithm: escapement.FixedWindow, Rate: escapement.PerHour(1000), Sync: time.Minute}
	p, err := l.Compile()
	if err != nil {
		t.Fatal(err)
	}
	loans := []escapement.Loan{{Plan: p, Ask: algo.Ask{Epoch: -1, Window: -1, Want: 400, WantNext: 92}}}
	var answers [1]escapement.Granted
	redistest.Eventually(t, "the store lends", func() bool {
		s.Lend(t.Context(), loans, answers[:])
		return answers[0].Outcome == escapement.Decided
	})
	g := &answers[0].Grant
	want := record{algo.Store(g.Window) * 3600 * second, 400, 92, true}
	if got, ok := parseRecord(srv.Must(t, "GET", recordKey)); !ok || got != want || g.Units != 400 || g.Next != 92 {
		t.Errorf("%+v %t, want %+v, of a grant %+v", got, ok, want, g)
	}
}

func TestLost(t *testing.T) {
	const w = 10 * second
	for name, c := range map[string]struct {
		known, spent record
		want         int64
	}{
		"nothing":                         {record{start: w, units: 5}, record{start: w, units: 5}, 0},
		"of one window":                   {record{start: w, units: 5}, record{start: w, units: 9}, 4},
		"more came back than went out":    {record{start: w, units: 9}, record{start: w, units: 5}, 0},
		"of the next window too":          {record{start: w, units: 5, next: 2}, record{start: w, units: 9, next: 8}, 10},
		"the next window opened":          {record{start: w, units: 500, next: 2}, record{start: 2 * w, units: 9, next: 1}, 8},
		"a window of which it knows none": {record{start: w, units: 500}, record{start: 5 * w, units: 9, next: 1}, 10},
	} {
		if got := lost(c.known, c.spent, w); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	h := &history{admitted: []Stamp{{At: begin}, {At: begin + 5}, {At: begin + 9}, {At: begin + algo.Store(10)}}}
	if got := h.between(begin+1, begin+9); got != 2 {
		t.Errorf("%d, want 2", got)
	}
}
