package tree

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is a node on its way to a typed value: what it is, where it stands and whom to
// tell. Reading methods report what is wrong and then return false.
type Value struct {
	Node *Node
	Path string

	report  *Report
	pattern string // Path with * for names and [] for indexes
}

// Root is the value of a whole document.
func Root(r *Report, n *Node) Value { return Value{Node: n, report: r} }

// Add records a finding at the value, unless the value is missing from the environment:
// that was reported.
func (v Value) Add(s Severity, problem, hint string) {
	if v.Node.unset {
		return
	}
	v.report.Add(v.Node.Place, v.Path, s, problem, hint)
}

// Fail records a mistake.
func (v Value) Fail(problem, hint string) { v.Add(Error, problem, hint) }

// Warn records advice.
func (v Value) Warn(problem, hint string) { v.Add(Warning, problem, hint) }

// Unsupported records that what the value asks for does not exist here.
func (v Value) Unsupported(problem, hint string) {
	if v.report.IgnoreUnsupported {
		v.Add(Dropped, problem, hint)
		return
	}
	v.Fail(problem, hint)
}

// Report is where the value's findings go.
func (v Value) Report() *Report { return v.report }

// Quote is a text as messages show it; what came from the environment stays hidden.
func (v Value) Quote() string { return quote(v.Node.show()) }

// Hide keeps the value out of every message, and its line out of excerpts.
func (v Value) Hide() {
	v.Node.shown = "what is written here"
	v.report.hide(v.Node.Place.Line)
}

// MaxInt is the largest integer read: beyond it, other readers of JSON lose digits.
const MaxInt = 1<<53 - 1

// Int reads a whole number from least to most.
func (v Value) Int(least, most int64) (int64, bool) {
	allowed := fmt.Sprintf("use a whole number from %d to %d", least, most)
	if most == MaxInt {
		allowed = fmt.Sprintf("use a whole number from %d to 2^53-1", least)
	}
	if v.Node.Kind != Number && !v.Node.likeNumber() {
		v.wrong("a whole number", allowed)
		return 0, false
	}
	n, problem := whole(v.Node.Text)
	switch {
	case problem != "":
	case n < least:
		problem = fmt.Sprintf("is below %d", least)
	case n > most:
		problem = fmt.Sprintf("is above %d", most)
	}
	if problem != "" {
		v.Fail(v.Node.show()+" "+problem, allowed)
		return 0, false
	}
	return n, true
}

// whole reads decimal digits with a sign, or says what else the text is.
func whole(text string) (n int64, problem string) {
	digits := strings.TrimLeft(text, "+-")
	plain := strings.Trim(digits, "0123456789") == ""
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case plain && len(digits) > 1 && digits[0] == '0', err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, "is not a plain decimal number"
	case math.Abs(f) > MaxInt, errors.Is(err, strconv.ErrRange):
		return 0, "is beyond 2^53-1"
	case !plain && f != math.Trunc(f):
		return 0, "is not a whole number"
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, "is not written as a whole number"
	}
	return n, ""
}

// Number reads a finite number.
func (v Value) Number() (float64, bool) {
	if v.Node.Kind != Number {
		v.wrong("a number", "")
		return 0, false
	}
	f, err := strconv.ParseFloat(v.Node.Text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		v.Fail(fmt.Sprintf("%s is not a plain decimal number", v.Node.show()), "write digits, such as 0.2")
		return 0, false
	}
	return f, true
}

// Bool reads true or false.
func (v Value) Bool() (value, ok bool) {
	if v.Node.Kind != Bool {
		v.wrong("true or false", "")
		return false, false
	}
	return v.Node.Text == "true", true
}

// Text reads a text that is not empty. The name of a zone, a host or a variable is one.
func (v Value) Text() (string, bool) {
	if v.Node.Kind != String {
		hint := ""
		if v.Node.Kind == Number || v.Node.Kind == Bool {
			hint = "put it in quotes if that is what it means"
		}
		v.wrong("a text", hint)
		return "", false
	}
	if v.Node.Text == "" {
		v.Fail("the text is empty", "write a value, or remove the key")
		return "", false
	}
	return v.Node.Text, true
}

// Word reads a text or a number as text, such as an id.
func (v Value) Word() (string, bool) {
	if v.Node.Kind == Number {
		return v.Node.Text, true
	}
	return v.Text()
}

// OneOf reads one of several words.
func (v Value) OneOf(words ...string) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		hint := "use " + oneOf(words)
		if near := Nearest(s, words); near != "" {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		v.Fail(v.Quote()+" is none of the choices", hint)
		return "", false
	}
	return s, true
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// Duration reads a length of time with its unit: "250ms", "10s", "1h30m", "7d".
func (v Value) Duration(least, most time.Duration) (time.Duration, bool) {
	const hint = "write a number and a unit, such as 250ms, 10s, 5m, 1h or 7d"
	if v.Node.Kind == Number {
		v.Fail(fmt.Sprintf("%s has no unit", v.Node.show()), fmt.Sprintf("write %[1]ss for seconds, %[1]sms for milliseconds", strings.TrimLeft(v.Node.show(), "+")))
		return 0, false
	}
	s, ok := v.Text()
	if !ok {
		return 0, false
	}
	d, err := parseDuration(s)
	switch {
	case err != nil:
		v.Fail(v.Quote()+" is not a length of time", hint)
	case d < least:
		v.Fail(fmt.Sprintf("%s is below %v", v.Node.show(), least), fmt.Sprintf("use %v to %v", least, most))
	case d > most:
		v.Fail(fmt.Sprintf("%s is above %v", v.Node.show(), most), fmt.Sprintf("use %v to %v", least, most))
	default:
		return d, true
	}
	return 0, false
}

var duration = regexp.MustCompile(`^([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|m|h))*$`)

// parseDuration is time.ParseDuration without signs and with days.
func parseDuration(s string) (time.Duration, error) {
	if s == "" || !duration.MatchString(s) {
		return 0, errors.New("not a duration")
	}
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	more, err := time.ParseDuration(rest)
	return time.Duration(n)*24*time.Hour + more, err
}

// Items are the values of a list, at most limit of them.
func (v Value) Items(limit int) ([]Value, bool) {
	if v.Node.Kind != List {
		v.wrong("a list", "")
		return nil, false
	}
	if len(v.Node.Items) > limit {
		v.Fail(fmt.Sprintf("%d entries", len(v.Node.Items)), fmt.Sprintf("use at most %d", limit))
		return nil, false
	}
	out := make([]Value, len(v.Node.Items))
	for i, n := range v.Node.Items {
		out[i] = Value{n, index(v.Path, i), v.report, v.pattern + "[]"}
	}
	return out, true
}

// Texts reads a list of at least one text, at most limit of them; those that are not
// texts are reported and left out.
func (v Value) Texts(limit int) []Value {
	items, ok := v.Items(limit)
	if ok && len(items) == 0 {
		v.Fail("the list is empty", "write at least one entry, or remove the key")
	}
	return slices.DeleteFunc(items, func(item Value) bool {
		_, ok := item.Text()
		return !ok
	})
}

// wrong reports a value of another kind than wanted.
func (v Value) wrong(wanted, hint string) {
	if v.Node.Kind == Null {
		v.Fail("has no value", "write "+wanted+", or remove the key")
		return
	}
	if hint == "" {
		hint = "write " + wanted
	}
	if v.Node.Kind == String && !v.Node.plain && strings.HasSuffix(wanted, "number") {
		if _, err := strconv.ParseFloat(v.Node.Text, 64); err == nil {
			hint = "remove the quotes"
		}
	}
	v.Fail(v.Node.describe()+" is not "+wanted, hint)
}
