package httpretry

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// handed is what a client can see of a case of testdata/cases.jsonl.
type handed struct {
	ID     string
	Kind   string
	Limit  struct{ Count int64 }
	Events []struct {
		Op    string
		Times int
		Fault string
	}
	Expect []struct {
		Remaining *int64
		WaitMS    int64 `json:"retry_after_ms"`
		Seconds   int64 `json:"retry_after_s"`
	}
}

// handedCases are those of some kinds.
func handedCases(t *testing.T, kinds ...string) []handed {
	t.Helper()
	f, err := os.Open("../testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []handed
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c handed
		var kind struct{ Kind string }
		if err := json.Unmarshal(lines.Bytes(), &kind); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(kinds, kind.Kind) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cases
}

// Whoever is refused in a case comes back when it is admitted and not before, and those who
// are refused together come back apart.
func TestHandedRefusals(t *testing.T) {
	refusals := map[string]int{}
	for _, c := range handedCases(t, "http_headers", "herd") {
		for i, x := range c.Expect {
			if x.WaitMS == 0 {
				continue
			}
			refusals[c.ID]++
			wait := time.Duration(x.WaitMS) * time.Millisecond
			if x.Seconds == 0 {
				x.Seconds = (x.WaitMS + 999) / 1000
			}
			t.Run(fmt.Sprint(c.ID, " event ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					comeBack(t, wait, x.Seconds, max(1, c.Events[i].Times))
				})
			})
		}
	}
	// Those of the kinds that are left out refuse nothing with a wait.
	want := map[string]int{"B66": 1, "B67": 2, "B68": 1, "B69": 2, "B70": 1, "B73": 1, "B74": 1, "B75": 1, "B76": 2, "B77": 1, "B78": 1}
	if fmt.Sprint(refusals) != fmt.Sprint(want) {
		t.Errorf("refusals in cases: %v, want %v", refusals, want)
	}
}

// comeBack has workers refused at one moment, told so many seconds and admitted after the
// wait.
func comeBack(t *testing.T, wait time.Duration, seconds int64, workers int) {
	began := clock.Mono()
	var mu sync.Mutex
	back := map[int64]int{} // second of the second attempt: how many
	first, early := 0, 0
	server := transport(func(*http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if first < workers {
			first++
			h := http.Header{"Retry-After": {fmt.Sprint(seconds)}}
			return &http.Response{StatusCode: 429, Header: h, Body: http.NoBody}, nil
		}
		if clock.Since(began) < wait {
			early++
		}
		back[int64(clock.Since(began)/time.Second)]++
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	})
	const longest = 24 * time.Hour
	tr, err := New(server, Config{MaxWait: longest, Budget: Budget{Burst: workers}})
	if err != nil {
		t.Fatal(err)
	}
	told := time.Duration(min(seconds, int64(2*longest/time.Second))) * time.Second
	latest := told + max(told/10, time.Second)
	var all sync.WaitGroup
	for range workers {
		r := request(t, "POST", strings.NewReader("order"))
		all.Go(func() {
			resp, err := tr.RoundTrip(r)
			switch took := clock.Since(began); {
			case err != nil:
				t.Error(err)
			case told > longest && (resp.StatusCode != 429 || took != 0):
				t.Errorf("told %d s: status %d after %v", seconds, resp.StatusCode, took)
			case told <= longest && (resp.StatusCode != 200 || took < told || took > latest):
				t.Errorf("told %d s: status %d after %v", seconds, resp.StatusCode, took)
			}
		})
	}
	all.Wait()
	if early > 0 {
		t.Errorf("%d of %d are refused again", early, workers)
	}
	for at, n := range back {
		if workers > 1 && n > workers/2 {
			t.Errorf("%d of %d come back in second %d", n, workers, at)
		}
	}
}

// transport is one in memory.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request that was executed and whose reply was lost is counted once.
func TestHandedLostReplies(t *testing.T) {
	checked := 0
	for _, c := range handedCases(t, "retry_double_count") {
		executed := int64(0)
		for i, e := range c.Events {
			if e.Op == "allow" {
				lost := strings.Contains(e.Fault, "reply lost")
				tr, err := New(transport(func(*http.Request) (*http.Response, error) {
					if executed++; lost && executed == 1 {
						return nil, io.ErrUnexpectedEOF
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
				}), Config{Backoff: time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tr.RoundTrip(request(t, "POST", strings.NewReader("order"))); (err != nil) != lost {
					t.Errorf("%s: %v", c.ID, err)
				}
			}
			if want := c.Expect[i].Remaining; want != nil {
				checked++
				if got := c.Limit.Count - executed; got != *want {
					t.Errorf("%s: %d remain, want %d", c.ID, got, *want)
				}
			}
		}
	}
	if checked != 1 {
		t.Errorf("%d expectations were checked, want 1", checked)
	}
}
