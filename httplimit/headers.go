package httplimit

import (
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/escapement-io/escapement"
)

// Style is a dialect of rate limit fields. IETF and Draft03 follow Internet-Drafts, so
// their fields may change with a later version of this package.
type Style uint8

// The styles. The two triples describe a single limit: with several they show the one
// that refused for longest, or else the one with the least remaining.
const (
	IETF    Style = iota // RateLimit-Policy and RateLimit, as in draft-ietf-httpapi-ratelimit-headers-08 to -11
	Draft03              // RateLimit-Limit, -Remaining and -Reset, as in its version 03
	X                    // X-RateLimit-Limit, -Remaining and -Reset
	None                 // no fields but Retry-After
)

var styleNames = [...]string{IETF: "ietf", Draft03: "draft03", X: "x", None: "none"}

// String is the name used in configuration, such as "draft03".
func (s Style) String() string {
	if int(s) < len(styleNames) {
		return styleNames[s]
	}
	return "style(" + strconv.Itoa(int(s)) + ")"
}

// ParseStyle is the inverse of Style.String.
func ParseStyle(name string) (Style, bool) {
	for s, n := range styleNames {
		if n == name {
			return Style(s), true
		}
	}
	return 0, false
}

// Named is a decision under the name that clients see. Without a name it is the limit's
// own. In one response names should differ; of two decisions under one name the one that
// leaves less is shown.
type Named struct {
	Name     string
	Decision *escapement.Decision
}

func (n *Named) name() string {
	if n.Name != "" {
		return n.Name
	}
	return n.Decision.Plan().Limit().Name
}

// visible reports whether clients are told of the limit: not of a shadow, nor of a part
// of a refused request that was not decided.
func (n *Named) visible() bool {
	return n.Decision != nil && n.Decision.Plan() != nil && !n.Decision.Plan().Limit().Shadow
}

func (n *Named) refused() bool { return n.visible() && !n.Decision.Allowed }

// known reports whether the decision rests on a state: a fallback without one, and the
// refusal of an invalid claim, have no instant and no units.
func (n *Named) known() bool {
	d := n.Decision
	return d.At() != 0 || d.Units() > 0 || d.Allowed && d.Basis() != escapement.Fallback
}

// tighter reports whether n leaves a client less than m does.
func (n *Named) tighter(m *Named) bool {
	if a, b := n.refused(), m.refused(); a != b {
		return a
	}
	if a, b := n.Decision.RetryAfter(), m.Decision.RetryAfter(); a != b {
		return a > b
	}
	if a, b := n.Decision.Remaining(), m.Decision.Remaining(); a != b {
		return a < b
	}
	return n.Decision.ResetAfter() > m.Decision.ResetAfter()
}

// reset is what the wire calls the time until there is more: for a refused claim the
// wait until it is admitted, for an allowed one the time until the state is as new.
func (n *Named) reset() time.Duration {
	if !n.Decision.Allowed {
		return n.Decision.RetryAfter()
	}
	return n.Decision.ResetAfter()
}

// WriteHeaders adds the fields of a style to h.
//
// IETF: RateLimit-Policy lists each limit with q, the number that is enforced (headroom
// taken off), and w, the seconds in which its rate earns q; w is left out for calendars
// and where it is not a whole number. RateLimit lists r, the whole units left, and t, the
// seconds until there is more, rounded up: the wait of the claim if it was refused, the
// time until the state is as new if it was allowed. In a refusal no t points past the
// Retry-After of Wait: limits that had room leave out theirs if it does.
//
// Draft03 and X: the reset is the same t, also in delta seconds.
//
// Shadow limits are not mentioned; what a store could not answer appears in
// RateLimit-Policy only.
func WriteHeaders(h http.Header, style Style, ds ...Named) {
	switch style {
	case IETF:
		writeIETF(h, ds)
	case Draft03:
		Triple{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}.Write(h, ds...)
	case X:
		Triple{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}.Write(h, ds...)
	case None:
	}
}

// Triple names the three fields of the older styles. Names in the form of
// http.CanonicalHeaderKey cost least.
type Triple struct{ Limit, Remaining, Reset string }

// XTriple is X-RateLimit-Limit, -Remaining and -Reset, or X-prefix-RateLimit-Limit and so
// on. The prefix must consist of letters, digits and hyphens.
func XTriple(prefix string) Triple {
	if prefix != "" {
		prefix += "-"
	}
	name := http.CanonicalHeaderKey("X-" + prefix + "RateLimit-")
	return Triple{name + "Limit", name + "Remaining", name + "Reset"}
}

// Write sets the three fields for the tightest of the decisions, or none if there is
// none to tell of. A field without a name is left out.
func (t Triple) Write(h http.Header, ds ...Named) {
	var n *Named
	for i := range ds {
		if d := &ds[i]; d.visible() && d.known() && (n == nil || d.tighter(n)) {
			n = d
		}
	}
	if n == nil {
		return
	}
	reset := n.reset()
	if reset == escapement.Never {
		reset = n.Decision.ResetAfter()
	}
	set := func(name string, value int64) {
		if name != "" {
			h.Set(name, strconv.FormatInt(value, 10))
		}
	}
	set(t.Limit, n.Decision.Limit())
	set(t.Remaining, n.Decision.Remaining())
	set(t.Reset, seconds(reset))
}

// writeIETF adds field lines and replaces none: lines of one list field count together.
func writeIETF(h http.Header, ds []Named) {
	wait := Wait(ds...)
	policy, state := make([]byte, 0, 128), make([]byte, 0, 128)
	for i := range ds {
		n := &ds[i]
		if !n.visible() || hidden(ds, i) {
			continue
		}
		policy = appendName(policy, n.name())
		policy = append(policy, ";q="...)
		policy = appendInteger(policy, n.Decision.Limit())
		if w := window(n.Decision.Plan()); w > 0 {
			policy = append(policy, ";w="...)
			policy = appendInteger(policy, w)
		}
		if !n.known() {
			continue
		}
		state = appendName(state, n.name())
		state = append(state, ";r="...)
		state = appendInteger(state, n.Decision.Remaining())
		if t := n.reset(); t != escapement.Never && (wait == 0 || t <= wait) {
			state = append(state, ";t="...)
			state = appendInteger(state, seconds(t))
		}
	}
	if len(policy) > 0 {
		h.Add("Ratelimit-Policy", string(policy))
	}
	if len(state) > 0 {
		h.Add("Ratelimit", string(state))
	}
}

// hidden reports whether a tighter decision stands under the same name, or an earlier
// one that is as tight.
func hidden(ds []Named, i int) bool {
	for j := range ds {
		if j == i || !ds[j].visible() || ds[j].name() != ds[i].name() {
			continue
		}
		if ds[j].tighter(&ds[i]) || j < i && !ds[i].tighter(&ds[j]) {
			return true
		}
	}
	return false
}

// window is the seconds in which the plan's rate earns its capacity, 0 if that is not a
// whole number: with a bucket of 100 at 50 a second, q=100;w=2.
func window(p *escapement.Plan) int64 {
	count, per := p.Core().Rate()
	hi, lo := bits.Mul64(uint64(p.Core().Capacity()), uint64(per))
	if hi >= uint64(count) {
		return 0
	}
	micros, rest := bits.Div64(hi, lo, uint64(count))
	w := micros / 1_000_000
	if rest != 0 || micros%1_000_000 != 0 || w > maxInteger {
		return 0
	}
	return int64(w)
}

// maxInteger is the largest integer of a structured field (RFC 9651): 15 digits.
const maxInteger = 999_999_999_999_999

func appendInteger(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(n, maxInteger), 10)
}

// appendName appends a member of a list whose item is a String. Bytes that a String
// cannot hold are percent-encoded, and so is %, so that different names stay different.
func appendName(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c < 0x20, c > 0x7e, c == '%':
			const hex = "0123456789ABCDEF"
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// seconds rounds up.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
