// Package hook tells a program or a web address of your own when the clocks of a machine
// misbehave, so that you can switch to another time source, drain the machine or page
// someone. Subscribe Hook.Notify to a clock.Guard and call Run.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/escapement-io/escapement/clock"
)

// Config says what is called, and for what. Exactly one of Exec and Webhook is set.
type Config struct {
	// Exec is a program and its arguments; no shell is involved. The program gets a
	// Payload as JSON on its standard input, and in its environment, beside that of this
	// process:
	//
	//	ESCAPEMENT_CLOCK_KIND         step, leap, suspend, rebased, switched or unclear
	//	ESCAPEMENT_CLOCK_LEVEL        info, warning or critical
	//	ESCAPEMENT_CLOCK_DIRECTION    forward, backward or empty
	//	ESCAPEMENT_CLOCK_SIZE_MS      signed, with decimals
	//	ESCAPEMENT_CLOCK_CAUSE        a sentence
	//	ESCAPEMENT_CLOCK_WALL_BEFORE  RFC 3339: the wall clock as it would have been
	//	ESCAPEMENT_CLOCK_WALL_AFTER   RFC 3339: the wall clock as it is
	//	ESCAPEMENT_CLOCK_SUPPRESSED   events not reported since the last call
	Exec []string

	// Webhook is an http or https address. A Payload is posted to it as JSON; any status of
	// 2xx is success, redirects are not followed.
	Webhook string

	// Kinds are the events that count. Default: Step and Leap.
	Kinds []clock.Kind

	// MinSize leaves out events of a kind that has a size, below it. Default: 5 ms.
	MinSize time.Duration

	// Every is the least pause between two calls. Events within it are counted, and the
	// last of them is reported after it. Default: 10 s.
	Every time.Duration

	// Timeout ends a call. Default: 10 s.
	Timeout time.Duration

	// Failed, if set, is told why a call failed, by the goroutine of Run. The reason holds no
	// argument and no address beyond its host.
	Failed func(error)
}

// Payload is what a hook is told.
type Payload struct {
	Kind       clock.Kind  `json:"kind"`
	Level      clock.Level `json:"level"`
	Direction  string      `json:"direction"`
	SizeMS     float64     `json:"size_ms"`
	BracketUS  float64     `json:"bracket_us"`
	Cause      string      `json:"cause"`
	WallBefore string      `json:"wall_before"`
	WallAfter  string      `json:"wall_after"`
	Host       string      `json:"host"`
	PID        int         `json:"pid"`
	Suppressed uint64      `json:"suppressed"`
}

// Stats counts what a hook did.
type Stats struct {
	Called     uint64 `json:"called"`
	Failed     uint64 `json:"failed"`
	Suppressed uint64 `json:"suppressed"`
	LastError  string `json:"last_error,omitempty"`
}

// Hook calls a program or a web address, one call at a time and not too often. At most one
// event waits.
type Hook struct {
	cfg    Config
	host   string
	client *http.Client
	wake   chan struct{}

	mu         sync.Mutex
	waiting    *clock.Event
	suppressed uint64 // since the last call
	stats      Stats
}

const maxArgs = 64

// New makes a hook and reports everything that is wrong with its configuration at once.
func New(cfg Config) (*Hook, error) {
	var errs []error
	if (len(cfg.Exec) > 0) == (cfg.Webhook != "") {
		errs = append(errs, errors.New("hook: set either exec or webhook"))
	}
	if len(cfg.Exec) > maxArgs {
		errs = append(errs, fmt.Errorf("hook: exec has %d words: use at most %d, and a script of your own for the rest", len(cfg.Exec), maxArgs))
	}
	if cfg.Webhook != "" {
		if u, err := url.Parse(cfg.Webhook); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, errors.New("hook: webhook is not an http or https address with a host"))
		}
	}
	if len(cfg.Kinds) == 0 {
		cfg.Kinds = []clock.Kind{clock.Step, clock.Leap}
	}
	for _, k := range cfg.Kinds {
		if !slices.Contains(clock.Kinds(), k) {
			errs = append(errs, fmt.Errorf("hook: there is no kind %q: use some of %v", k, clock.Kinds()))
		}
	}
	for _, d := range []struct {
		name string
		d    *time.Duration
		def  time.Duration
	}{{"min size", &cfg.MinSize, 5 * time.Millisecond}, {"every", &cfg.Every, 10 * time.Second}, {"timeout", &cfg.Timeout, 10 * time.Second}} {
		if *d.d == 0 {
			*d.d = d.def
		}
		if *d.d < 0 {
			errs = append(errs, fmt.Errorf("hook: %s %v: use a positive duration", d.name, *d.d))
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Hook{
		cfg: cfg, host: host, wake: make(chan struct{}, 1),
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, errors.Join(errs...)
}

// Notify takes an event. It never blocks: it is made for clock.Guard.Subscribe.
func (h *Hook) Notify(e clock.Event) {
	if !slices.Contains(h.cfg.Kinds, e.Kind) || e.Size != 0 && e.Size.Abs() < h.cfg.MinSize {
		return
	}
	h.mu.Lock()
	if h.waiting != nil {
		h.suppressed++
		h.stats.Suppressed++
	}
	h.waiting = &e
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run makes the calls until ctx is done. A call under way is ended then.
func (h *Hook) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		p, ok := h.next()
		if !ok {
			continue
		}
		err := h.call(ctx, p)
		h.mu.Lock()
		h.stats.Called++
		if err != nil {
			h.stats.Failed++
			h.stats.LastError = err.Error()
		}
		h.mu.Unlock()
		if err != nil && h.cfg.Failed != nil && ctx.Err() == nil {
			h.cfg.Failed(err)
		}
		rest := time.NewTimer(h.cfg.Every)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// Stats returns the counts so far.
func (h *Hook) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

// next takes the waiting event.
func (h *Hook) next() (Payload, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		return Payload{}, false
	}
	e := *h.waiting
	p := Payload{
		Kind: e.Kind, Level: e.Level, Direction: e.Direction(), Cause: e.Cause,
		SizeMS: e.Size.Seconds() * 1e3, BracketUS: e.Width.Seconds() * 1e6,
		WallBefore: wall(e.Before), WallAfter: wall(e.After),
		Host: h.host, PID: os.Getpid(), Suppressed: h.suppressed,
	}
	h.waiting, h.suppressed = nil, 0
	return p, true
}

func wall(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// call tells the program or the address. Errors name neither arguments nor the address
// beyond its host: both may hold secrets.
func (h *Hook) call(ctx context.Context, p Payload) error {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("hook: writing the payload: %w", err)
	}
	if len(h.cfg.Exec) > 0 {
		return run(ctx, h.cfg.Exec, environment(p), body)
	}
	return h.post(ctx, body)
}

func (h *Hook) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("hook: the webhook is not a valid address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "escapement")
	resp, err := h.client.Do(req)
	if err != nil {
		if whole := (*url.Error)(nil); errors.As(err, &whole) {
			err = whole.Err // without the address
		}
		return fmt.Errorf("hook: posting to %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("hook: posting to %s: it answered %d, want 2xx", req.URL.Host, resp.StatusCode)
	}
	return nil
}

// environment is the payload as variables.
func environment(p Payload) []string {
	return []string{
		"ESCAPEMENT_CLOCK_KIND=" + string(p.Kind),
		"ESCAPEMENT_CLOCK_LEVEL=" + string(p.Level),
		"ESCAPEMENT_CLOCK_DIRECTION=" + p.Direction,
		"ESCAPEMENT_CLOCK_SIZE_MS=" + strconv.FormatFloat(p.SizeMS, 'f', -1, 64),
		"ESCAPEMENT_CLOCK_CAUSE=" + p.Cause,
		"ESCAPEMENT_CLOCK_WALL_BEFORE=" + p.WallBefore,
		"ESCAPEMENT_CLOCK_WALL_AFTER=" + p.WallAfter,
		"ESCAPEMENT_CLOCK_SUPPRESSED=" + strconv.FormatUint(p.Suppressed, 10),
	}
}
