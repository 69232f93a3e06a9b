package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// ErrNoKey says that a request lacks what a limit is counted by.
var ErrNoKey = errors.New("httplimit: request has no key")

// Refusal says why a request does not pass.
type Refusal struct {
	// Status is 429 if a limit is used up, 503 if a store could not answer and the limit's
	// policy is to deny, or if the request's context ended, and 400 if the request has no
	// key or its cost is not valid.
	Status int
	// Wait is what Retry-After says, jitter included, before rounding up to seconds: Never
	// if no wait helps, 0 with 400; Retry-After is then absent.
	Wait time.Duration
	// Limits are the decisions, as far as there are any; those of a refused request are
	// not all refusals.
	Limits []Named
	// Err is why there is no decision, or why one rests on a limit's OnFailure.
	Err error
}

// Violated names the limits that refused, in order, each once; none of them is a shadow.
func (f *Refusal) Violated() []string {
	names := []string{}
	for i := range f.Limits {
		if n := &f.Limits[i]; n.refused() && !slices.Contains(names, n.name()) {
			names = append(names, n.name())
		}
	}
	return names
}

// RefuseFunc answers a refused request. Retry-After and the fields of the style are set
// already.
type RefuseFunc func(w http.ResponseWriter, r *http.Request, f *Refusal)

// problem is a problem document (RFC 9457) with the types and the member that
// draft-ietf-httpapi-ratelimit-headers defines.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// WriteProblem answers with a problem document. It names the limits that refused, and
// nothing of keys, counts or errors.
func WriteProblem(w http.ResponseWriter, _ *http.Request, f *Refusal) {
	p := problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status}
	switch f.Status {
	case http.StatusTooManyRequests:
		p.Type = problemTypes + "quota-exceeded"
		p.Title = "The quota of this client is used up"
		p.Violated = f.Violated()
	case http.StatusServiceUnavailable:
		p.Type = problemTypes + "temporary-reduced-capacity"
		p.Title = "Quotas cannot be checked at the moment"
		p.Violated = f.Violated()
	}
	// Marshal fails for no value of this type.
	body, _ := json.Marshal(p)
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.Status)
	// The client may be gone.
	_, _ = w.Write(body)
}
