package twogateways

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/escapement-io/escapement/algo"
)

// StampField is the header field in which a gateway under drill says what it decided by.
const StampField = "Escapement-Stamp"

// Stamp is what a gateway says of one of its decisions.
type Stamp struct {
	At     algo.Store // on the store's line
	Window algo.Store // the start of the window it was charged to
	Basis  string     // such as leased
}

// ParseStamp reads "at=1700000000123456;window=1700000000000000;basis=leased".
func ParseStamp(text string) (Stamp, error) {
	var s Stamp
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case seen[name]:
			return s, fmt.Errorf("drill: the stamp %q has %s twice", text, name)
		case name == "basis" && value != "":
			s.Basis = value
		case name == "at" && err == nil:
			s.At = algo.Store(n)
		case name == "window" && err == nil:
			s.Window = algo.Store(n)
		case name == "at" || name == "window" || name == "basis":
			return s, fmt.Errorf("drill: the stamp %q has no %s", text, name)
		}
		seen[name] = true
	}
	if !seen["at"] || !seen["window"] || !seen["basis"] {
		return s, fmt.Errorf("drill: the stamp %q; want at, window and basis", text)
	}
	return s, nil
}
