package cases

import (
	"encoding/json"
	"strconv"
)

// Case is one line of a file.
type Case struct {
	ID             string          `json:"id"`
	Kind           string          `json:"kind"`
	Source         string          `json:"source"`
	Related        []string        `json:"related"`
	Title          string          `json:"title"`
	Algorithm      string          `json:"algorithm"`
	Store          string          `json:"store"`
	Limit          *Limit          `json:"limit"`
	Limits         []Limit         `json:"limits"`
	ConfigRejectOK bool            `json:"config_reject_ok"` // refusing the limit is right too
	SaturateOK     bool            `json:"saturate_ok"`      // so is a wait capped at the largest duration
	Events         []Event         `json:"events"`
	RawExpect      json.RawMessage `json:"expect"`
	Expect         []Expect        `json:"-"` // as long as Events, or empty
	ExpectTotal    *Bounds         `json:"expect_total"`
	ExpectText     string          `json:"expect_text"`
	Reason         string          `json:"reason"`

	Line int `json:"-"` // in the file, from 1
}

// Limit is a limit in the terms of the format. Which fields count depends on the
// algorithm; see Limit.compile.
type Limit struct {
	Name           string `json:"name"`
	Algorithm      string `json:"algorithm"`
	Shadow         bool   `json:"shadow"`
	Capacity       int64  `json:"capacity"`
	RefillTokens   int64  `json:"refill_tokens"`
	RefillPeriodMS int64  `json:"refill_period_ms"`
	Burst          int64  `json:"burst"`
	Count          int64  `json:"count"`
	PeriodMS       int64  `json:"period_ms"`
	WindowMS       int64  `json:"window_ms"`
	Align          string `json:"align"`
	Variant        string `json:"variant"`
	Calendar       string `json:"calendar"`
	TZ             string `json:"tz"`
	EpochMS        int64  `json:"epoch_ms"`
	Ident          *Ident `json:"ident"`
}

// Ident says how the address of a client is found.
type Ident struct {
	TrustedProxies []string `json:"trusted_proxies"`
	IPv6Prefix     int      `json:"ipv6_prefix"`
}

// Event is one thing that happens, at a true time.
type Event struct {
	TMS          int64             `json:"t_ms"`
	Op           string            `json:"op"`
	Cost         Cost              `json:"cost"`
	Costs        map[string]Cost   `json:"costs"`
	RawTimes     *int64            `json:"times"`
	Times        int64             `json:"-"` // RawTimes, or 1
	EveryMS      int64             `json:"every_ms"`
	Concurrent   bool              `json:"concurrent"`
	ID           string            `json:"id"`
	Key          *string           `json:"key"`
	KeyParts     []string          `json:"key_parts"`
	Keys         map[string]string `json:"keys"`
	Peer         string            `json:"peer"`
	XFF          string            `json:"xff"`
	Path         string            `json:"path"`
	Limit        *Limit            `json:"limit"`
	Ctx          string            `json:"ctx"`
	DeadlineMS   *int64            `json:"deadline_ms"`
	CancelMS     *int64            `json:"cancel_after_ms"`
	UntilMS      int64             `json:"until_ms"`
	ClockMS      int64             `json:"clock_offset_ms"`
	MonoMS       int64             `json:"mono_offset_ms"`
	CapturedMS   *int64            `json:"captured_now_ms"`
	StoreClockMS int64             `json:"store_offset_ms"`
	Fault        string            `json:"fault"`
	Config       string            `json:"config"`
}

// Cost is what an event asks for. Anything but a whole number is kept to be refused.
type Cost struct {
	Units int64
	Set   bool
	Bad   bool // not a whole number that fits 64 bits
}

// UnmarshalJSON accepts any JSON value.
func (c *Cost) UnmarshalJSON(b []byte) error {
	*c = Cost{Set: true}
	n, err := strconv.ParseInt(string(b), 10, 64)
	c.Units, c.Bad = n, err != nil
	return nil
}

// Expect is what must come of an event. Nil fields are not checked.
type Expect struct {
	Allowed      *bool            `json:"allowed"`
	AllowedCount *int64           `json:"allowed_count"`
	Remaining    *int64           `json:"remaining"`
	RetryAfterMS Wait             `json:"retry_after_ms"`
	RetryAfterS  *int64           `json:"retry_after_s"`
	ResetAfterMS Wait             `json:"reset_after_ms"`
	WaitMS       *int64           `json:"wait_ms"`
	Error        *string          `json:"error"`
	DeniedBy     *[]string        `json:"denied_by"`
	RemainingBy  map[string]int64 `json:"remaining_by"`
}

func (e *Expect) empty() bool {
	return e.Allowed == nil && e.AllowedCount == nil && e.Remaining == nil && !e.RetryAfterMS.Set &&
		e.RetryAfterS == nil && !e.ResetAfterMS.Set && e.WaitMS == nil && e.Error == nil &&
		e.DeniedBy == nil && e.RemainingBy == nil
}

// Wait is a number of milliseconds, or never, which the format writes as null.
type Wait struct {
	Set   bool
	Never bool
	MS    int64
}

// UnmarshalJSON reads a whole number or null.
func (w *Wait) UnmarshalJSON(b []byte) error {
	*w = Wait{Set: true, Never: string(b) == "null"}
	if w.Never {
		return nil
	}
	return json.Unmarshal(b, &w.MS)
}

// MarshalJSON is the inverse.
func (w Wait) MarshalJSON() ([]byte, error) {
	if w.Never {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, w.MS, 10), nil
}

// Bounds hold how many units of all events pass.
type Bounds struct {
	Min *int64 `json:"min"`
	Max *int64 `json:"max"`
}

// numeric reports whether the case states an expectation that is not in words.
func (c *Case) numeric() bool {
	for i := range c.Expect {
		if !c.Expect[i].empty() {
			return true
		}
	}
	return c.ExpectTotal != nil && (c.ExpectTotal.Min != nil || c.ExpectTotal.Max != nil)
}
