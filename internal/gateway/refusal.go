package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/escapement-io/escapement/internal/config"
)

// refusal is the answer to a client that a limit refused, made once per configuration.
type refusal struct {
	code int
	kind []string // shared by all answers, and never changed
	body []byte
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

var (
	isJSON    = []string{jsonType}
	isProblem = []string{problemType}
)

// quotaExceeded is the problem type of draft-ietf-httpapi-ratelimit-headers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

type errorBody struct {
	ErrorMsg string `json:"error_msg"`
}

type problemBody struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies"`
}

func newRefusal(c *config.Limit) refusal {
	code := c.Rejected.Code
	if code == 0 {
		code = http.StatusTooManyRequests
	}
	if c.Compatible {
		msg := c.Rejected.Msg
		if msg == "" {
			msg = http.StatusText(code)
		}
		return refusal{code, isJSON, encode(errorBody{msg})}
	}
	return refusal{code, isProblem, encode(problemBody{
		Type: quotaExceeded, Title: "Quota exceeded", Status: code,
		Detail: c.Rejected.Msg, Violated: []string{c.Name},
	})}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers only
	}
	return append(b, '\n')
}

func (a *refusal) write(w http.ResponseWriter) {
	w.Header()["Content-Type"] = a.kind
	if a == &noKey || a == &badKey {
		w.Header().Set("WWW-Authenticate", `apikey realm="escapement"`)
	}
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // a client that is gone needs no answer
}

type keyBody struct {
	Message string `json:"message"`
}

// The answers of the gateway itself.
var (
	noKey        = refusal{http.StatusUnauthorized, isJSON, encode(keyBody{"Missing API key in request"})}
	badKey       = refusal{http.StatusUnauthorized, isJSON, encode(keyBody{"Invalid API key in request"})}
	badTarget    = refusal{http.StatusBadRequest, isJSON, encode(errorBody{"the request target has no path"})}
	noRoute      = refusal{http.StatusNotFound, isJSON, encode(errorBody{"404 Route Not Found"})}
	badGateway   = refusal{http.StatusBadGateway, isJSON, encode(errorBody{"the upstream could not be reached or closed the connection"})}
	tooSlow      = refusal{http.StatusGatewayTimeout, isJSON, encode(errorBody{"the upstream did not answer in time"})}
	badBody      = refusal{http.StatusBadRequest, isJSON, encode(errorBody{"the request body could not be read"})}
	slowClient   = refusal{http.StatusRequestTimeout, isJSON, encode(errorBody{"the request body did not arrive in time"})}
	noVerdict    = refusal{http.StatusServiceUnavailable, isJSON, encode(errorBody{"a limit could not be decided"})}
	noVerdict500 = refusal{http.StatusInternalServerError, isJSON, encode(errorBody{"a limit could not be decided"})}
	badVariable  = refusal{http.StatusInternalServerError, isJSON, encode(errorBody{"count or time_window of the request is not a positive integer"})}
	noRule       = refusal{http.StatusInternalServerError, isJSON, encode(errorBody{"no rule applies to the request"})}
	tooManyHeld  = refusal{http.StatusServiceUnavailable, isJSON, encode(errorBody{"too many requests are waiting for their turn"})}
)
