package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// CeilingOptions says which running gateway is measured, and under which limit it stands.
type CeilingOptions struct {
	URL     string
	Header  http.Header // of every request
	Limit   Limit       // Burst is what may pass before the limit holds
	Rate    int         // requests per second, on a fixed schedule
	For     time.Duration
	Refused int // the status of a refusal
}

const (
	maxInFlight = 256
	answerIn    = 5 * time.Second
	withinShare = 0.03 // of what is right
	maxFailed   = 0.01 // of what was offered
)

// Check reports everything that is wrong with the options.
func (o *CeilingOptions) Check() error {
	errs := []error{o.Limit.check()}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("drill: "+format, args...)) }
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		bad("the URL is not one of a gateway; write http://HOST:PORT/PATH")
	}
	if o.Rate < 1 || o.Rate > maxRate {
		bad("%d requests a second; use 1 to %d", o.Rate, maxRate)
	}
	if o.Refused < 400 || o.Refused > 599 {
		bad("a refusal of status %d; use 400 to 599", o.Refused)
	}
	if errs[0] == nil && o.Rate >= 1 {
		surplus := float64(o.Rate) - float64(o.Limit.Count)/o.Limit.Per.Seconds()
		if surplus < 0.2*float64(o.Rate) {
			bad("%d requests a second hardly exceed the limit; use half as much again as it admits", o.Rate)
		} else if need := o.lead(surplus) + o.Limit.Per; o.For < need || o.For > maxRun {
			bad("a load of %v; use at least %v, for the burst to be spent and a whole period to be counted, and at most %v", o.For, need.Round(time.Millisecond), maxRun)
		}
	}
	return errors.Join(errs...)
}

// lead is how long it takes until counting can begin.
func (o *CeilingOptions) lead(surplus float64) time.Duration {
	return time.Duration(float64(o.Limit.Burst)/surplus*float64(time.Second)) + o.Limit.Per/4
}

// Ceiling is what a running gateway was measured to admit.
type Ceiling struct {
	URL      string  `json:"url"`
	Limit    string  `json:"limit"`
	Rate     int     `json:"offered_per_second"`
	Offered  int     `json:"offered"`
	Admitted int     `json:"admitted"`
	Refused  int     `json:"refused"`
	Failed   int     `json:"failed"` // no answer, or a 5xx that is no refusal
	Counted  float64 `json:"counted_seconds"`
	In       int     `json:"admitted_in_counted"`
	Right    int     `json:"right"` // in the counted seconds
	Ratio    float64 `json:"ratio"`
	// Problems is what is out of bounds; empty if the ceiling is where it should be.
	Problems []string `json:"problems"`
}

// Held reports whether the ceiling is where it should be.
func (c *Ceiling) Held() bool { return len(c.Problems) == 0 }

// answer is how one request ended. It counts for when it was sent: a gateway decides before
// it asks its upstream, so the time of the answer is up to somebody else.
type answer struct {
	sent   algo.Mono
	status int // 0: none
}

// MeasureCeiling offers requests on a fixed schedule, whatever the answers, and judges what
// was admitted. It changes no clock.
func MeasureCeiling(ctx context.Context, o CeilingOptions) (*Ceiling, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout:       answerIn,
		Transport:     &http.Transport{MaxIdleConnsPerHost: maxInFlight},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		answers []answer
		turn    = make(chan struct{}, maxInFlight)
		missed  int
	)
	began := clock.Mono()
	for i := range int(o.For.Seconds() * float64(o.Rate)) {
		due := began + algo.Mono(int64(i)*int64(time.Second)/int64(o.Rate))
		if !sleepUntil(ctx, due) {
			break
		}
		select {
		case turn <- struct{}{}:
		default:
			missed++
			continue
		}
		wg.Go(func() {
			defer func() { <-turn }()
			a := o.ask(ctx, client)
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, a)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("drill: %w", ctx.Err())
	}
	for range missed {
		answers = append(answers, answer{sent: began})
	}
	return o.judge(answers, began+algo.Mono(o.For)), nil
}

func sleepUntil(ctx context.Context, due algo.Mono) bool {
	t := time.NewTimer(time.Duration(due - clock.Mono()))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *CeilingOptions) ask(ctx context.Context, client *http.Client) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil)
	if err != nil {
		return answer{}
	}
	for name, values := range o.Header {
		req.Header[name] = values
	}
	req.Host = req.Header.Get("Host") // empty: that of the URL
	sent := clock.Mono()
	resp, err := client.Do(req)
	if err != nil {
		return answer{sent: sent}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return answer{sent: sent, status: resp.StatusCode}
}

// judge counts whole periods after the burst is spent: however a limit cuts time, it admits
// its count in each stretch that is as long as its period. Counting begins a quarter of a
// period after the first refusal, away from the moment at which a window was used up.
func (o *CeilingOptions) judge(answers []answer, end algo.Mono) *Ceiling {
	c := &Ceiling{Limit: o.Limit.String(), Rate: o.Rate, Offered: len(answers), Problems: []string{}}
	if u, err := url.Parse(o.URL); err == nil {
		c.URL = u.Redacted()
	}
	slices.SortFunc(answers, func(a, b answer) int { return int(a.sent - b.sent) })
	first := algo.Mono(-1)
	for _, a := range answers {
		switch {
		case a.status == o.Refused:
			if c.Refused++; first < 0 {
				first = a.sent
			}
		case a.status == 0 || a.status >= 500:
			c.Failed++
		default:
			c.Admitted++
		}
	}
	problem := func(format string, args ...any) { c.Problems = append(c.Problems, fmt.Sprintf(format, args...)) }
	if float64(c.Failed) > maxFailed*float64(c.Offered) {
		problem("%d of %d requests failed: nothing can be said about the limit", c.Failed, c.Offered)
	}
	if first < 0 {
		problem("%d requests and none refused with %d: is there a limit in the way of this URL?", c.Offered, o.Refused)
		return c
	}
	from := first + algo.Mono(o.Limit.Per/4)
	periods := int64(end-from) / int64(o.Limit.Per)
	if periods < 1 {
		problem("no whole period of %v is left after the first refusal: load for longer, or name the burst", o.Limit.Per)
		return c
	}
	until := from + algo.Mono(periods*int64(o.Limit.Per))
	for _, a := range answers {
		if a.status != 0 && a.status != o.Refused && a.status < 500 && a.sent >= from && a.sent < until {
			c.In++
		}
	}
	c.Counted = (time.Duration(periods) * o.Limit.Per).Seconds()
	c.Right = int(periods * o.Limit.Count)
	c.Ratio = float64(c.In) / float64(c.Right)
	if off := float64(c.In - c.Right); max(off, -off) > max(1, withinShare*float64(c.Right)) {
		problem("%d admitted in %g s, %d are right: off by more than 3 %%", c.In, c.Counted, c.Right)
	}
	return c
}

// Text writes the measurement for people.
func (c *Ceiling) Text(out io.Writer) error {
	fmt.Fprintf(out, "%s under %d requests a second at %s\n\noffered %d: admitted %d, refused %d, failed %d\n", c.Limit, c.Rate, c.URL, c.Offered, c.Admitted, c.Refused, c.Failed)
	if c.Right > 0 {
		fmt.Fprintf(out, "in %g s after the burst: %d admitted, %d are right, ratio %.3f\n", c.Counted, c.In, c.Right, c.Ratio)
	}
	for _, p := range c.Problems {
		fmt.Fprintf(out, "PROBLEM: %s\n", p)
	}
	verdict := "the ceiling is where it should be"
	if !c.Held() {
		verdict = "out of bounds"
	}
	_, err := fmt.Fprintf(out, "\n%s\n", verdict)
	return err
}
