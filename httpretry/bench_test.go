package httpretry

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

type instant struct{ resp *http.Response }

func (i instant) RoundTrip(*http.Request) (*http.Response, error) { return i.resp, nil }

// BenchmarkFine is what a request costs that is not retried, beside the base.
func BenchmarkFine(b *testing.B) {
	base := instant{&http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}}
	tr, err := New(base, Config{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequest("GET", "http://api.example:8080/path", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.RoundTrip(r); err != nil {
			b.Fatal(err)
		}
	}
}
