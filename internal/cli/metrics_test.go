package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/gateway"
)

// scraped is a gateway as the command runs it, with so many limits on loopback.
func scraped(t testing.TB, limits, maxKeys int) *observed {
	t.Helper()
	var text strings.Builder
	text.WriteString("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nlimits:\n")
	for i := range limits {
		fmt.Fprintf(&text, "  limit-%05d: {algorithm: token_bucket, count: 100, per: 1s, key: [remote_addr]}\n", i)
	}
	text.WriteString("routes:\n")
	for i := 0; i < limits; i += escapement.MaxClaims {
		fmt.Fprintf(&text, "  - {uri: /r%d, upstream: {type: roundrobin, nodes: {\"127.0.0.1:1\": 1}}, limits: [", i)
		for j := i; j < min(i+escapement.MaxClaims, limits); j++ {
			fmt.Fprintf(&text, "limit-%05d,", j)
		}
		text.WriteString("]}\n")
	}
	cfg, findings := config.Parse("test.yaml", []byte(text.String()), config.Options{})
	if cfg == nil {
		t.Fatalf("%+v", findings)
	}
	logger := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	clocks, err := watchClocks(ctx, cfg.Clock, nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	o := &observed{store: records(cfg.Clock, maxKeys), clocks: clocks}
	if o.gateway, err = gateway.New(cfg, o.store, logger, o.admin()...); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.gateway.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		clocks.end()
	})
	return o
}

func (o *observed) scrape(t testing.TB) string {
	t.Helper()
	res, err := http.Get("http://" + o.gateway.AdminAddr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v", res.Status, err)
	}
	return string(b)
}

// TestMetricsOfAMillionKeys: what is scraped does not grow with the keys, only with the limits.
func TestMetricsOfAMillionKeys(t *testing.T) {
	const limits, keys, most = 100, 1_000_000, 1 << 20
	o := scraped(t, limits, keys+1)
	before := len(o.scrape(t))
	plan, err := escapement.Limit{Name: "limit-00000", Rate: escapement.PerHour(1)}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	o.store.Adopt(plan)
	for i := range keys {
		if _, err := o.store.DecideOne(t.Context(), escapement.Claim{Plan: plan, Key: fmt.Sprint("user-", i), Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	body := o.scrape(t)
	if !strings.Contains(body, fmt.Sprintf("\nescapement_store_keys %g\n", float64(keys))) {
		t.Error("the keys are not all there")
	}
	if len(body) >= most || len(body) > before+1000 {
		t.Errorf("%d bytes with a million keys and %d limits, %d bytes without keys; want less than %d", len(body), limits, before, most)
	}
	t.Logf("%d bytes with a million keys and %d limits", len(body), limits)
}

// TestMetricsOfTenThousandLimits holds docs/reference/metrics.md to what it says of a limit.
func TestMetricsOfTenThousandLimits(t *testing.T) {
	const limits, most = 10_000, 1300
	o := scraped(t, limits, 100)
	body := o.scrape(t)
	if each := len(body) / limits; each > most {
		t.Errorf("%d bytes for each of %d limits, want at most %d", each, limits, most)
	}
	t.Logf("%d bytes with %d limits", len(body), limits)
}

// BenchmarkScrape is the whole of a scrape, as its client sees it.
func BenchmarkScrape(b *testing.B) {
	for _, limits := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(limits), func(b *testing.B) {
			o := scraped(b, limits, 100)
			for b.Loop() {
				b.SetBytes(int64(len(o.scrape(b))))
			}
		})
	}
}
