package gateway

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/httplimit"
)

// writeHeaders tells the client where it stands with each limit that was asked: those of
// the native form in their style, those of limit-count in its own three fields. Shadow
// limits are not mentioned.
func (x *exchange) writeHeaders(h http.Header) {
	x.writeBasis(h)
	x.writeStamp(h)
	var named [escapement.MaxClaims]httplimit.Named
	for _, style := range [...]httplimit.Style{httplimit.IETF, httplimit.Draft03, httplimit.X} {
		n := 0
		for i, l := range x.limits {
			if i < len(x.parts) && !l.compat && l.style == style {
				named[n] = httplimit.Named{Name: l.Name, Decision: &x.parts[i]}
				n++
			}
		}
		if n > 0 {
			httplimit.WriteHeaders(h, style, named[:n]...)
		}
	}
	for i, l := range x.limits {
		if i == len(x.parts) {
			break
		}
		if l.compat && !l.Shadow {
			l.writeCompat(h, &x.parts[i])
		}
		if l == x.refuse {
			break // limit-count stops at the limit that refuses
		}
	}
}

// basisField says what the answer rests on, where that is not the state itself.
const basisField = "Escapement-Basis"

func (x *exchange) writeBasis(h http.Header) {
	for i := range x.parts {
		if b := x.parts[i].Basis(); b != escapement.Exact && !x.limits[i].Shadow {
			h[basisField] = []string{b.String()}
			return
		}
	}
}

// writeCompat sets limit-count's fields: the count, what is left (0 in a refusal), and
// the seconds to the end of the window in at most two decimals, rounded up.
func (l *limit) writeCompat(h http.Header, d *escapement.Decision) {
	if d.Plan() == nil {
		return
	}
	remaining := d.Remaining()
	if !d.Allowed {
		remaining = 0
	}
	set := func(name, value string) {
		if name != "" {
			h.Set(name, value)
		}
	}
	set(l.Headers.Limit, strconv.FormatInt(d.Limit(), 10))
	set(l.Headers.Remaining, strconv.FormatInt(remaining, 10))
	set(l.Headers.Reset, decimals(windowEnd(d)))
}

// windowEnd is the time to the end of the decision's window. A sliding window's is that
// of its current counter, as in limit-count.
func windowEnd(d *escapement.Decision) time.Duration {
	core := d.Plan().Core()
	if core.Algorithm() != escapement.SlidingWindow {
		return d.ResetAfter()
	}
	_, per := core.Rate()
	left := int64(per) - int64(d.At())%int64(per)
	return time.Duration(left) * time.Microsecond
}

// decimals is d in seconds with at most two decimals, rounded up.
func decimals(d time.Duration) string {
	const hundredth = 10 * time.Millisecond
	n := int64(d / hundredth)
	if d%hundredth > 0 {
		n++
	}
	b := strconv.AppendInt(nil, n/100, 10)
	if f := n % 100; f > 0 {
		b = append(b, '.', byte('0'+f/10))
		if f%10 > 0 {
			b = append(b, byte('0'+f%10))
		}
	}
	return string(b)
}

// refused answers a request that admit does not let pass.
func (x *exchange) refused(w http.ResponseWriter, no *refusal) {
	h := w.Header()
	x.writeHeaders(h)
	if wait, ok := x.retryAfter(no); ok && wait != escapement.Never {
		if x.refuse != nil && x.refuse.Headers.Jitter > 0 {
			wait += rand.N(x.refuse.Headers.Jitter + 1)
		}
		httplimit.WriteRetryAfter(h, wait)
	}
	x.body.closing(h)
	no.write(w)
}
