package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/algo"
)

// bounds is what a caller vouches for at the moment of sending: the instant of the call
// lies in [lo, hi] on the line, once adj is added to the server's reading.
type bounds struct {
	lo, hi  algo.Store
	adj     int64
	unasked bool // scripts may not ask for the time
}

func (b bounds) args(margin time.Duration) []string {
	adj := strconv.FormatInt(b.adj, 10)
	if b.unasked {
		adj = "-"
	}
	return []string{
		strconv.FormatInt(int64(b.lo), 10), strconv.FormatInt(int64(b.hi), 10), adj,
		strconv.FormatInt(margin.Milliseconds(), 10),
	}
}

// item is one request on its way: its claims with the plans that judge them.
type item struct {
	claims []escapement.Claim
	wires  []*wire
	keys   []string
	totals []int64 // per claim: the cost of all claims on its record
}

// takes reports whether the short script will do for items together: each takes from a
// record of its own, under one plan.
func takes(items []*item) bool {
	for i, it := range items {
		c := &it.claims[0]
		if len(it.claims) > 1 || c.Mode != escapement.Take || c.Patience > 0 || it.wires[0] != items[0].wires[0] {
			return false
		}
		for _, other := range items[:i] {
			if other.keys[0] == it.keys[0] {
				return false
			}
		}
	}
	return true
}

// middle is the instant whose calendar window is sent.
func (b bounds) middle() algo.Store { return b.lo + (b.hi-b.lo)/2 }

// pack is the bounds, the margin and a plan's numbers as the short scripts read them: all
// are integers below 2^53, so that a double holds them.
func (b bounds) pack(margin time.Duration, numbers []int64) string {
	p := make([]byte, 0, 8*(4+len(numbers)))
	add := func(f float64) { p = binary.LittleEndian.AppendUint64(p, math.Float64bits(f)) }
	add(float64(b.lo))
	add(float64(b.hi))
	if b.unasked {
		add(math.NaN())
	} else {
		add(float64(b.adj))
	}
	add(float64(margin.Milliseconds()))
	for _, n := range numbers {
		add(float64(n))
	}
	return string(p)
}

// encodeTakes is the arguments of the short script.
func encodeTakes(items []*item, b bounds, margin time.Duration) (keys, args []string) {
	w := items[0].wires[0]
	keys = make([]string, 0, len(items))
	args = make([]string, 0, 2+len(items))
	args = append(args, b.pack(margin, w.all(b.middle())), w.text)
	for _, it := range items {
		keys = append(keys, it.keys[0])
		args = append(args, strconv.FormatInt(it.claims[0].Cost, 10))
	}
	return keys, args
}

// encodeList is the arguments of the list script.
func encodeList(items []*item, b bounds, margin time.Duration) (keys, args []string) {
	var plans []*wire
	place := func(w *wire) int {
		for i, p := range plans {
			if p == w {
				return i + 1
			}
		}
		plans = append(plans, w)
		return len(plans)
	}
	at := make(map[string]string, len(items))
	var body []string
	for _, it := range items {
		body = append(body, strconv.Itoa(len(it.claims)))
		for i := range it.claims {
			k, ok := at[it.keys[i]]
			if !ok {
				keys = append(keys, it.keys[i])
				k = strconv.Itoa(len(keys))
				at[it.keys[i]] = k
			}
			body = append(body, k, strconv.Itoa(place(it.wires[i])))
			body = appendClaim(body, &it.claims[i], it.wires[i].plan)
			if len(it.claims) > 1 {
				body = append(body, strconv.FormatInt(it.totals[i], 10))
			}
		}
	}
	args = append(b.args(margin), strconv.Itoa(len(plans)))
	for _, w := range plans {
		numbers := w.all(b.middle())
		args = append(args, w.text, strconv.FormatInt(int64(w.since), 10), strconv.Itoa(len(numbers)))
		args = appendInts(args, numbers...)
	}
	return keys, append(args, body...)
}

func appendClaim(args []string, c *escapement.Claim, p *escapement.Plan) []string {
	mode, cost, extra := "t", c.Cost, int64(0)
	switch c.Mode {
	case escapement.Take:
		if c.Patience > 0 {
			mode, extra = "w", int64(min(c.Span(), algo.Span(algo.MaxInt)))
		}
	case escapement.TakeUpTo:
		mode = "u"
	case escapement.Charge:
		mode, extra = "c", int64(c.Receipt.At)
	case escapement.Refund:
		mode, cost, extra = "g", c.Receipt.Units, int64(c.Receipt.At)
	case escapement.Peek:
		mode = "k"
	}
	shadow := "0"
	if p.Limit().Shadow {
		shadow = "1"
	}
	return append(args, mode, shadow, strconv.FormatInt(cost, 10), strconv.FormatInt(extra, 10))
}

// Reasons of the scripts for not running a request.
const (
	statusAdopt    = -1 // the short script met a record of another plan
	statusVersion  = -2
	statusType     = -3
	statusRecord   = -4
	statusCalendar = -5
)

// ErrRecord says that a key of the store does not hold a record that this version can
// read. It is left alone.
var ErrRecord = errors.New("redisstore: unusable record")

// errAdopt asks for the list script; nothing ran.
var errAdopt = errors.New("redisstore: record of another plan")

var errShort = errors.New("redisstore: reply is shorter than its requests")

// widen makes of the words that the short script answers a claim with those of a list of
// one request, in a buffer of the ticket, and returns what is left.
func widen(it *item, words []int64, buf *[7]int64) (own, rest []int64) {
	n := 3
	switch {
	case len(words) > 0 && words[0] < 0:
		*buf = [7]int64{words[0]}
		return buf[:2], words[1:]
	case it.wires[0].rolling():
		n = 5
	case it.wires[0].kind == 's':
		n = 4
	}
	if len(words) < n {
		return nil, nil
	}
	w := words[:n]
	*buf = [7]int64{}
	own = buf[:]
	own[0], own[1] = w[0], w[0]
	copy(own[2:], w[1:min(n, 4)])
	if n == 5 {
		own[6] = w[4]
		return own, words[n:]
	}
	return own[:5], words[n:]
}

// decode reads the reply of one request from words, which begin with its status, into
// the caller's answer, and returns what is left of them.
func decode(it *item, now algo.Store, words []int64, a *escapement.Answer) ([]int64, error) {
	if len(words) < 2 {
		return nil, errShort
	}
	status := words[0]
	if status < 0 {
		return words[2:], it.reason(status, words[1])
	}
	words = words[1:]
	parts := a.Parts[:0]
	for i := range it.claims {
		n := 4
		if it.wires[i].rolling() {
			n = 6
		}
		if len(words) < n {
			return nil, errShort
		}
		v, err := it.verdict(i, status == 1, now, words[:n])
		if err != nil {
			return nil, err
		}
		parts = append(parts, escapement.Decide(it.wires[i].plan, v, escapement.Exact))
		words = words[n:]
	}
	a.Outcome, a.Admitted, a.Parts = escapement.Decided, status == 1, parts
	if len(parts) == 1 && it.wires[0].plan.Limit().Shadow {
		a.Admitted = true
	}
	return words, nil
}

func (it *item) reason(status, detail int64) error {
	key := it.keys[0]
	switch status {
	case statusAdopt:
		return errAdopt
	case statusVersion:
		return fmt.Errorf("%w: a record of %q has version %q; it was written by another release, and is left alone until it expires", ErrRecord, key, rune(detail))
	case statusType:
		return fmt.Errorf("%w: %q is not a string; the key prefix is shared with something else, choose another", ErrRecord, key)
	case statusCalendar:
		return fmt.Errorf("%w: the store's line is outside the calendar windows that were sent; the next call will send others", escapement.ErrStoreUnavailable)
	}
	return fmt.Errorf("%w: %q does not hold a record; delete it", ErrRecord, key)
}

// verdict computes the fields of one claim: from the words that its state had, which are
// judged here again, or from the verdict of a rolling window.
func (it *item) verdict(i int, admitted bool, now algo.Store, w []int64) (algo.Verdict, error) {
	c := it.claims[i]
	core := it.wires[i].plan.Core()
	if len(it.claims) > 1 {
		it.regroup(i, admitted, w[0], &c)
	}
	if w[0] == 3 {
		c.Receipt.Units = 0
	}
	if it.wires[i].rolling() {
		r := algo.Rolled{Admitted: w[0] > 0, Free: algo.Store(w[1]), InUse: w[2], Wait: algo.Span(w[3]), Now: algo.Store(w[5]), Units: c.Cost}
		switch c.Mode {
		case escapement.TakeUpTo:
			r.Units = w[4]
		case escapement.Refund:
			r.Units, r.None = w[4], true
		case escapement.Charge:
			r.Units, r.None = w[4], c.Cost == 0
			if at := c.Receipt.At; at != 0 && at < r.Now && c.Cost > 0 {
				r.Delay = algo.Span(at - r.Now)
			}
		case escapement.Peek:
			r.None = true
		case escapement.Take:
		}
		return core.Rolled(r), nil
	}
	st := algo.State{At: algo.Store(w[1]), A: w[2], B: w[3]}
	v := c.Ask(core, &st, now)
	if v.Admitted != (w[0] > 0) {
		return v, fmt.Errorf("redisstore: script and package algo disagree about limit %s at %d on %v: this is a bug, please report it", it.wires[i].plan.Limit().Name, now, w)
	}
	return v, nil
}

// regroup makes the claim what it was judged as, one of several.
func (it *item) regroup(i int, admitted bool, flag int64, c *escapement.Claim) {
	switch {
	case admitted && flag == 2:
		if c.Mode == escapement.Peek {
			c.Cost = 0
		}
		c.Mode, c.Receipt = escapement.Charge, algo.Receipt{}
	case !admitted && flag == 1:
		c.Mode, c.Cost = escapement.Peek, 0
	case flag == 0:
		c.Cost = it.totals[i]
		if it.wires[i].rolling() {
			c.Mode = escapement.Peek
		}
	}
}

// sum fills totals: two claims on one record are judged on what they ask together.
func (it *item) sum() {
	it.totals = make([]int64, len(it.claims))
	for i := range it.claims {
		for j := range it.claims {
			if it.keys[i] == it.keys[j] {
				it.totals[i] = min(it.totals[i]+it.claims[j].Cost, algo.MaxInt)
			}
		}
	}
}
