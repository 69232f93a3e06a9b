package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/escapement-io/escapement/internal/redistest"
)

// Two gateways that lease a limit lose their store in the middle of a window: each goes on
// by its part of the demand, with what it was lent taken off, says so, and reports it when
// the store is back.
func TestLeasesGoOnWithoutTheStore(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{})
	conf := fmt.Sprintf(`
listen: 127.0.0.1:0
stores: {main: {type: redis, url: "redis://%s", deadline: 200ms, instances: 2}}
limits:
  daily: {algorithm: fixed_window, count: 400, per: 24h, key: [http_x_consumer], store: main, sync: {interval: 200ms}}
routes:
  - uri: /*
    limits: [daily]
    upstream: {nodes: {"UPSTREAM": 1}}
`, srv.Addr())
	u := newUpstream(t)
	gateways := []*gateway{start(t, u, conf, nil), start(t, u, conf, nil)}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	// ask sends a request to each gateway, so that their demand is alike.
	ask := func() (passed int, bases string) {
		for _, g := range gateways {
			code, basis, err := fetch(t, client, g.url+"/", "alice")
			if err != nil || code != 200 && code != 429 {
				t.Fatalf("%d %v", code, err)
			}
			if code == 200 {
				passed++
			}
			bases += basis + " "
		}
		return passed, bases
	}
	passed, bases := 0, ""
	for range 50 {
		n := 0
		n, bases = ask()
		passed += n
		time.Sleep(20 * time.Millisecond)
	}
	if passed < 95 || bases != "leased leased " {
		t.Fatalf("%d of 100 passed, the last on %q", passed, bases)
	}
	srv.Stop()
	for range 400 {
		var n int
		if n, bases = ask(); n == 0 && bases == "fallback fallback " {
			break
		}
		passed += n
	}
	// Half and half, give or take what the demand of the last interval was measured to be; the
	// shares of the exact mode would let 400 pass beside what was lent.
	if passed < 300 || passed > 480 || bases != "fallback fallback " {
		t.Errorf("%d passed in all, the last on %q; want about 400 of a day, on the fallback", passed, bases)
	}
	srv.Continue()
	redistest.Eventually(t, "decisions on leases again", func() bool {
		n, bases := ask()
		passed += n
		time.Sleep(50 * time.Millisecond)
		return bases == "leased leased "
	})
	key := strings.Fields(srv.Must(t, "KEYS", "*daily*"))
	if len(key) != 1 {
		t.Fatalf("the records %q", key)
	}
	redistest.Eventually(t, "what was used alone to be charged", func() bool {
		n, _ := ask()
		passed += n
		time.Sleep(100 * time.Millisecond)
		var at, charged int64
		if _, err := fmt.Sscanf(srv.Must(t, "GET", key[0]), "1 %d %d ", &at, &charged); err != nil {
			t.Fatal(err)
		}
		return charged >= int64(passed)*9/10
	})
	if passed > 500 || passed != u.total() {
		t.Errorf("%d passed, %d arrived", passed, u.total())
	}
}
