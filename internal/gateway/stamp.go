package gateway

import (
	"net/http"
	"strconv"

	"github.com/escapement-io/escapement"
)

// WithStamps adds a header field to every answer that a limit decided, for drills that
// count by the store's time: "at" is the instant of the decision on the store's line,
// "window" the start of the window that an admitted request counts in, both in
// microseconds, and "basis" what the decision rests on.
func WithStamps() Option { return func(o *options) { o.stamps = true } }

// StampField is the field that WithStamps adds.
const StampField = "Escapement-Stamp"

// writeStamp stamps the answer with the decision of the first limit.
func (x *exchange) writeStamp(h http.Header) {
	if !x.g.opts.stamps || len(x.parts) == 0 || x.parts[0].Plan() == nil {
		return
	}
	d := &x.parts[0]
	b := strconv.AppendInt([]byte("at="), int64(d.At()), 10)
	b = strconv.AppendInt(append(b, ";window="...), countsIn(d), 10)
	b = append(append(b, ";basis="...), d.Basis().String()...)
	h[StampField] = []string{string(b)}
}

// countsIn is the start of the window that an admitted request counts in. Decisions that
// rest on a ledger say so in their receipts; an exact one counts in the window of its instant.
func countsIn(d *escapement.Decision) int64 {
	at := int64(d.At())
	if d.Allowed && (d.Basis() == escapement.Leased || d.Basis() == escapement.Delayed) {
		return int64(d.Receipt().At)
	}
	core := d.Plan().Core()
	if a := core.Algorithm(); a == escapement.FixedWindow || a == escapement.SlidingWindow {
		if _, per := core.Rate(); per > 0 {
			return at - at%int64(per)
		}
	}
	return at
}
