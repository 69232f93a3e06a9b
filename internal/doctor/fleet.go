package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/escapement-io/escapement/algo"
	"github.com/escapement-io/escapement/clock"
)

// Bounds of a fleet.
const (
	MaxFleet      = 500
	fleetAtOnce   = 16
	maxClockReply = 1 << 20
	maxSources    = 64 // of one instance
	maxSourceName = 300
)

// Instance is one gateway as it says of itself.
type Instance struct {
	URL    string
	BootID string
	// Offset is the guarded time of the instance minus the wall clock of this host.
	Offset  time.Duration
	Error   time.Duration
	Clock   clock.Snapshot
	Sources []string // what it takes its time from; empty: it does not know
	Failed  string
}

// InstanceRow is an Instance in the report.
type InstanceRow struct {
	URL      string   `json:"url"`
	OffsetMS *float64 `json:"offset_ms"` // the instance minus this host
	ErrorMS  *float64 `json:"error_ms"`
	State    string   `json:"state"`
	BoundMS  *float64 `json:"bound_ms"` // null: nothing bounds its error
	Steps    uint64   `json:"steps"`
	Sources  []string `json:"sources"`
	Problem  string   `json:"problem,omitempty"`
}

func (f *Facts) fleetRows() []InstanceRow {
	var rows []InstanceRow
	for _, i := range f.Fleet {
		r := InstanceRow{URL: i.URL, Sources: append([]string{}, i.Sources...), Problem: i.Failed}
		if i.Failed == "" {
			r.OffsetMS, r.ErrorMS = millis(i.Offset), millis(i.Error)
			r.State, r.Steps = string(i.Clock.Bound.State), i.steps()
			if i.Clock.Bounded {
				r.BoundMS = millis(i.Clock.ErrorBound)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func (i *Instance) steps() uint64 { return i.Clock.Tally.StepsForward + i.Clock.Tally.StepsBackward }

// clockDocument is what an instance answers under /v1/clock, as far as it matters here.
type clockDocument struct {
	BootID  string   `json:"boot_id"`
	Sources []string `json:"sources"`
	clock.Snapshot
}

// clockPath is where an admin listener shows its clock.
const clockPath = "/v1/clock"

// clockURL completes the address of an admin listener.
func clockURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of an instance is not a URL; write http://host:port of its admin listener")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = clockPath
	}
	return u, nil
}

// askFleet measures all instances, a few at once, in the order of the addresses.
func askFleet(ctx context.Context, urls []*url.URL) []Instance {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	out := make([]Instance, len(urls))
	turn := make(chan struct{}, fleetAtOnce)
	var wg sync.WaitGroup
	for i, u := range urls {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			out[i] = askInstance(ctx, client, u)
		})
	}
	wg.Wait()
	return out
}

// askInstance asks eight times, for the offset, and keeps the last answer.
func askInstance(ctx context.Context, client *http.Client, u *url.URL) Instance {
	i := Instance{URL: strings.TrimSuffix(u.Redacted(), clockPath)}
	o := measure(ctx, i.URL, clock.StoreClockFunc(func(ctx context.Context) (algo.Store, error) {
		d, err := fetchClock(ctx, client, u)
		if err != nil {
			return 0, err
		}
		i.Clock, i.BootID, i.Sources = d.Snapshot, d.BootID, d.Sources
		return algo.Store(d.Now / 1000), nil
	}))
	i.Offset, i.Error, i.Failed = -o.Offset, o.Error, o.Failed
	return i
}

func fetchClock(ctx context.Context, client *http.Client, u *url.URL) (*clockDocument, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxClockReply+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %s", resp.Status)
	case len(body) > maxClockReply:
		return nil, fmt.Errorf("its answer is longer than %d bytes", maxClockReply)
	}
	d := &clockDocument{}
	if err := json.Unmarshal(body, d); err != nil || d.Now <= 0 || d.ErrorBound < 0 || !slices.Contains(clock.States(), d.Bound.State) {
		return nil, errors.New("its answer is not the document of /v1/clock")
	}
	if len(d.Sources) > maxSources || slices.ContainsFunc(d.Sources, unfitToPrint) {
		return nil, fmt.Errorf("it names more than %d sources of time, or one with more than %d bytes or with control characters", maxSources, maxSourceName)
	}
	return d, nil
}

// unfitToPrint is a name that would not stay in its place of a report.
func unfitToPrint(name string) bool {
	return len(name) > maxSourceName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
