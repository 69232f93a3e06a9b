package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/internal/redistest"
)

// records are those of a prefix of keys, as they stand.
func records(t *testing.T, srv *redistest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, k := range strings.Fields(srv.Must(t, "KEYS", "*lost*")) {
		all[k] = srv.Must(t, "GET", k)
	}
	if len(all) == 0 {
		t.Fatal("there is no record")
	}
	return all
}

// A store that goes back to an older copy, or to nothing, is noticed by whoever saw more;
// behind a fence it then lends nothing.
func TestWritesThatAreLost(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow} {
		for _, fence := range []bool{false, true} {
			srv.Must(t, "FLUSHALL")
			l := leased("lost", a, 1000)
			l.Rate.Per, l.Sync, l.Fence = 24*time.Hour, time.Minute, fence
			p := plan(t, l)
			ask := func(ver, want int64) algo.Grant {
				t.Helper()
				loans := asks(p, want, "user")
				loans[0].Ask.Ver = ver
				g := lendAll(s, loans)[0]
				if g.Outcome != escapement.Decided {
					t.Fatal(g.Err)
				}
				return g.Grant
			}
			first := ask(0, 10)
			old := records(t, srv)
			second := ask(first.Ver, 20)
			if first.Lost != 0 || second.Lost != 0 || second.Ver != first.Ver+1+granted(&second) {
				t.Fatalf("%v: %+v, then %+v", a, first, second)
			}
			for k, v := range old {
				srv.Must(t, "SET", k, v)
			}
			third := ask(second.Ver, 30)
			if third.Lost != second.Ver-first.Ver || third.Ver <= second.Ver {
				t.Errorf("%v: lost %d, want %d; version %d after %d", a, third.Lost, second.Ver-first.Ver, third.Ver, second.Ver)
			}
			if got := granted(&third); (got == 0) != fence {
				t.Errorf("%v, fence %t: %d are lent after a loss", a, fence, got)
			}
			srv.Must(t, "FLUSHALL")
			if g := ask(third.Ver, 30); g.Lost != third.Ver || (granted(&g) == 0) != fence {
				t.Errorf("%v, fence %t: of an empty store %+v", a, fence, g)
			}
		}
	}
}

// A record from before there were versions has version 0, and has lost nothing.
func TestRecordsWithoutVersion(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	s := open(t, Config{Addrs: []string{srv.Addr()}})
	for _, a := range []escapement.Algorithm{escapement.FixedWindow, escapement.RollingWindow} {
		l := leased("lost", a, 1000)
		l.Fence = true
		p := plan(t, l)
		srv.Must(t, "FLUSHALL")
		before := lendAll(s, asks(p, 10, "user"))[0].Grant
		for k, v := range records(t, srv) {
			head, tail, ok := strings.Cut(v, "\nM")
			if !ok {
				t.Fatalf("a record without a version: %q", v)
			}
			srv.Must(t, "SET", k, head+"\nL"+tail[8:])
		}
		loans := asks(p, 20, "user")
		loans[0].Ask.Ver = 99
		g := lendAll(s, loans)[0]
		if g.Outcome != escapement.Decided || g.Grant.Lost != 0 || granted(&g.Grant) == 0 || g.Grant.Available >= before.Available {
			t.Errorf("%v: %+v after %+v", a, g, before)
		}
	}
}
