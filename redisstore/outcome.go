package redisstore

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
)

// Errors of the store; each wraps escapement.ErrStoreUnavailable where trying again may
// help.
var (
	errTimeout = unavailable("no answer within the deadline")
	errWaiting = unavailable("not sent within the deadline")
	errBreaker = unavailable("the store failed lately and is left alone until it answers a probe")
	errFull    = unavailable("too many decisions wait for the store")
	errNoLine  = unavailable("the store's time line is not known yet")
	errClosed  = errors.New("redisstore: closed")
)

type unavailableError string

func unavailable(text string) error { return unavailableError(text) }

func (e unavailableError) Error() string { return "redisstore: " + string(e) }

func (e unavailableError) Unwrap() error { return escapement.ErrStoreUnavailable }

// refusals are what a server says without having run a script, or of the first write of
// one; scripts write only once everything is judged.
var refusals = []string{
	"NOSCRIPT", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "CROSSSLOT", "LOADING", "READONLY", "MASTERDOWN", "BUSY",
	"OOM", "MISCONF", "NOREPLICAS", "NOAUTH", "NOPERM", "WRONGPASS", "UNKILLABLE", "LINE",
}

// outcome says what is known of a call that failed.
func outcome(err error) escapement.Outcome {
	if unsent(err) {
		return escapement.NotRun
	}
	var dial *net.OpError
	if re, ok := rueidis.IsRedisErr(err); ok {
		if refused(re.Error()) {
			return escapement.NotRun
		}
		return escapement.Unknown
	}
	if errors.As(err, &dial) && dial.Op == "dial" {
		return escapement.NotRun
	}
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.Is(err, rueidis.ErrNoAddr) {
		return escapement.NotRun
	}
	// Whether a connection was cut before or after the script ran cannot be told.
	return escapement.Unknown
}

// unsent reports whether a call was not made because nothing bounds its instant.
func unsent(err error) bool { return errors.Is(err, errNoLine) || errors.Is(err, errBounds) }

// refused reports whether an error of the server proves that nothing was charged.
func refused(text string) bool {
	for _, r := range refusals {
		// Before Redis 7 the error of a command within a script is quoted in another.
		if strings.HasPrefix(text, r+" ") || text == r || strings.Contains(text, "-"+r+" ") {
			return true
		}
	}
	return false
}

// faulty reports whether a failed call speaks against the server, and so for leaving it
// alone for a while.
func faulty(err error) bool {
	re, ok := rueidis.IsRedisErr(err)
	if !ok {
		return true
	}
	for _, r := range [...]string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "READONLY", "OOM", "MISCONF", "NOREPLICAS"} {
		if strings.HasPrefix(re.Error(), r) {
			return true
		}
	}
	return false
}
