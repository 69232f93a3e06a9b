package memstore

import (
	"context"
	"testing"
	"time"

	"github.com/escapement-io/escapement"
)

func BenchmarkSmoke(b *testing.B) {
	s := New()
	defer s.Close()
	l, err := escapement.New(s, escapement.Limit{Name: "x", Rate: escapement.Rate{Count: 1000, Per: time.Second}})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		l.Take(ctx, "some key", 1)
	}
}

func TestSmoke(t *testing.T) {
	s := New()
	defer s.Close()
	l, err := escapement.New(s, escapement.Limit{Name: "x", Rate: escapement.PerMinute(5)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		d, err := l.Take(t.Context(), "k", 1)
		t.Log(d.Allowed, d.Remaining(), d.RetryAfter(), err)
		if d.Allowed != (i < 5) {
			t.Fatal(i)
		}
	}
	ok, parts, err := escapement.TakeAll(t.Context(), escapement.Use{Limiter: l, Key: "a", Cost: 3}, escapement.Use{Limiter: l, Key: "a", Cost: 2}, escapement.Use{Limiter: l, Key: "b", Cost: 1})
	t.Log(ok, parts[0].Remaining(), parts[1].Remaining(), parts[2].Remaining(), err)
	if !ok {
		t.Fatal()
	}
}
