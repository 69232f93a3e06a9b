package httpretry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What is read of an answer that is not returned, so that its connection can be used
// again: what is longer or slower costs more than a new connection.
const (
	maxDrain     = 64 << 10
	minDrainTime = 10 * time.Millisecond
	maxDrainTime = time.Second
)

// source makes the body of each attempt. Each is read from its beginning by one attempt
// only: the transport may still be reading that of an attempt which was answered early.
type source struct {
	first io.ReadCloser                 // nil after the first attempt
	again func() (io.ReadCloser, error) // nil if the body cannot be sent again
}

// newSource reads a body of known length up to limit into memory unless the request can
// make it again. One of unknown length is left alone: it may end only after the answer.
func newSource(req *http.Request, limit int64) (source, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return source{again: func() (io.ReadCloser, error) { return req.Body, nil }}, nil
	case req.GetBody != nil:
		return source{first: req.Body, again: req.GetBody}, nil
	case req.ContentLength <= 0 || req.ContentLength > limit:
		return source{first: req.Body}, nil
	}
	b := make([]byte, req.ContentLength+1)
	n, err := io.ReadFull(req.Body, b)
	_ = req.Body.Close()
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return source{}, err
	}
	if int64(n) != req.ContentLength {
		return source{}, fmt.Errorf("%w: ContentLength is %d and the body has %d bytes or more", errLength, req.ContentLength, n)
	}
	b = b[:n]
	return source{again: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}, nil
}

var (
	errLength = errors.New("httpretry: make the request's ContentLength that of its body")
	errGone   = errors.New("httpretry: the body cannot be sent again")
)

// next is the body of the next attempt.
func (s *source) next() (io.ReadCloser, error) {
	if b := s.first; b != nil {
		s.first = nil
		return b, nil
	}
	if s.again == nil {
		return nil, errGone
	}
	return s.again()
}

// drain ends a response that is not returned, in about the time that is waited anyway.
func drain(resp *http.Response, wait time.Duration) {
	if resp == nil || resp.Body == nil {
		return
	}
	if resp.ContentLength <= maxDrain {
		late := time.AfterFunc(min(max(wait, minDrainTime), maxDrainTime), func() { _ = resp.Body.Close() })
		_, _ = io.CopyN(io.Discard, resp.Body, maxDrain+1)
		late.Stop()
	}
	_ = resp.Body.Close()
}
