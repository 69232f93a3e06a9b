package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/escapement-io/escapement/httplimit"
	"github.com/escapement-io/escapement/internal/policy"
)

// exchange is one request on its way through the gateway. It is its own ReverseProxy and
// transport, so that what the steps know of the request needs no context value and no
// allocation; exchanges are pooled.
type exchange struct {
	vars
	asked
	g    *Gateway
	snap *snapshot
	// entered holds the stores of snap open.
	entered bool
	w       http.ResponseWriter
	body    *clientBody // nil without one
	not     tried
	proxy   httputil.ReverseProxy
}

// flushEvery is how long part of a response of known length may wait for more of it. One
// of unknown length, or of events, passes at once; a short one passes in one piece.
const (
	flushEvery = 5 * time.Millisecond
	onePiece   = 4 << 10
)

func (g *Gateway) newExchange() any {
	x := &exchange{g: g}
	x.vars.hostname = g.hostname
	x.proxy = httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x,
		ModifyResponse: x.modify,
		ErrorHandler:   x.failed,
		BufferPool:     &buffers,
		ErrorLog:       g.quiet.logger(),
	}
	return x
}

// ServeHTTP answers one request under the snapshot in force when it arrived.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inflight.Add(1)
	defer g.inflight.Done()
	x := g.exchanges.Get().(*exchange)
	defer x.end()
	x.snap = g.enter()
	x.entered = len(x.snap.stores) > 0
	if r.ProtoMajor == 2 {
		stream := newWatchedStream(w, g.opts.clientTimeout)
		defer stream.end()
		w = stream
	}
	x.vars.r, x.w = r, w
	x.body = watchBody(w, r, g.opts.clientTimeout)
	no := x.admit(r)
	x.leave()
	if no != nil {
		x.body.drain()
		x.refused(w, no)
		return
	}
	x.proxy.ServeHTTP(w, r)
}

// leave says that no store is asked any more.
func (x *exchange) leave() {
	if x.entered {
		x.entered = false
		x.g.leave(x.snap)
	}
}

func (x *exchange) end() {
	x.leave()
	x.body.release()
	x.vars = vars{hostname: x.vars.hostname}
	x.asked.reset()
	clear(x.not)
	x.snap, x.w, x.body, x.not = nil, nil, nil, x.not[:0]
	x.g.exchanges.Put(x)
}

// admit finds the route and the consumer of the request and asks the limits. It returns
// nil if the request may go to the upstream, and otherwise what to answer.
func (x *exchange) admit(r *http.Request) *refusal {
	x.host, x.path = policy.HostName(r.Host), policy.CleanPath(r.URL.Path)
	x.peer = peerAddr(r)
	x.consumer = x.snap.who.fromHeader(r, x.peer)
	x.client = httplimit.ClientAddr(r, x.snap.clients)
	if !hasPath(r) {
		return &badTarget
	}
	onlyWebSocket(r.Header)
	if r.Method != http.MethodConnect { // a tunnel has no path, and leads past every limit
		x.rt = x.snap.router.match(x.host, x.path, r.Method)
	}
	if x.rt == nil {
		return &noRoute
	}
	if a := x.rt.KeyAuth; a != nil {
		var no *refusal
		if x.consumer, no = x.snap.who.fromKey(r, a); no != nil {
			return no
		}
	}
	return x.enforce(r.Context())
}

// hasPath reports whether a route can be found by the target of a request. A target such
// as "a:http://host/path" has no path of its own, and would be forwarded as one that has.
func hasPath(r *http.Request) bool {
	p := r.URL.Path
	return r.URL.Opaque == "" && (p == "" || p[0] == '/' || p == "*" && r.Method == http.MethodOptions)
}

// onlyWebSocket removes any other protocol that a client asks to change to: within one
// that holds requests, as h2c does, they would pass unlimited. A server may ignore the
// wish.
func onlyWebSocket(h http.Header) {
	if v := h["Upgrade"]; len(v) > 1 || len(v) == 1 && !strings.EqualFold(v[0], "websocket") {
		delete(h, "Upgrade")
	}
}

// rewrite addresses the request to the upstream. RoundTrip chooses the node. A path with
// dot segments is forwarded as it was matched: an upstream that does not resolve them
// would see a path of other limits.
func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	out, h := p.Out, p.Out.Header
	out.URL.Scheme = x.rt.upstream.scheme
	out.URL.RawQuery = p.In.URL.RawQuery // ReverseProxy drops what net/url cannot read
	if policy.HasDots(out.URL.Path) {
		out.URL.Path, out.URL.RawPath = x.path, ""
	}
	out.Trailer = p.In.Trailer // its values arrive after the body
	x.forwardedFor(p.In, h)
	if x.rt.KeyAuth != nil {
		h.Set(consumerHeader, x.consumer)
	}
	if name := x.snap.who.header; name != "" && x.consumer != "" {
		// Set again, for a field that is named in Connection is removed on the way.
		h[name] = []string{x.consumer}
	}
}

// forwardedFor says who the request is for: a trusted proxy's word is passed on with the
// proxy added, anybody else's is replaced.
func (x *exchange) forwardedFor(in *http.Request, h http.Header) {
	if !x.peer.IsValid() {
		h.Del("X-Real-Ip")
		return
	}
	peer := x.peer.String()
	chain, host, proto, port := peer, in.Host, x.scheme(), x.g.port
	if contains(x.snap.clients.Trusted, x.peer) {
		if before := in.Header["X-Forwarded-For"]; len(before) > 0 {
			chain = strings.Join(before, ", ") + ", " + peer
		}
		host = orElse(in.Header.Get("X-Forwarded-Host"), host)
		proto = orElse(in.Header.Get("X-Forwarded-Proto"), proto)
		port = orElse(in.Header.Get("X-Forwarded-Port"), port)
	}
	client := peer
	if x.client != x.peer {
		client = x.client.String()
	}
	v := []string{chain, host, proto, port, client}
	h["X-Forwarded-For"], h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = v[0:1:1], v[1:2:2], v[2:3:3]
	h["X-Forwarded-Port"], h["X-Real-Ip"] = v[3:4:4], v[4:5:5]
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// RoundTrip sends the request to a node, and to another one if no connection could be
// made: then nothing was sent, whatever the method. A request of which anything may have
// been sent is not repeated here; net/http repeats one that is idempotent and has no
// body if a kept connection turns out to be closed.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	u := x.rt.upstream
	key := ""
	if u.hashOn != nil {
		var ok bool
		if key, ok = u.hashOn.Eval(&x.vars); !ok {
			key = x.remoteAddr()
		}
	}
	body, host := r.Body, r.Host
	for n := u.balance.next(key, nil); ; {
		r.URL.Host = n.addr
		switch u.passHost {
		case "node":
			r.Host = n.addr
		case "rewrite":
			r.Host = u.host
		default:
			r.Host = host
		}
		if body != nil {
			r.Body = unclosed{body}
		}
		n.active.Add(1)
		res, err := u.rt.RoundTrip(r)
		if err == nil {
			return watchResponse(res, n, u.read), nil
		}
		n.active.Add(-1)
		var dial *dialError
		if !errors.As(err, &dial) || r.Context().Err() != nil || len(x.not) >= u.retries {
			return nil, err
		}
		x.not = append(x.not, n)
		if n = u.balance.next(key, x.not); n == nil {
			return nil, err
		}
	}
}

// unclosed is a body that outlives an attempt to send it.
type unclosed struct{ io.Reader }

func (unclosed) Close() error { return nil }

// answerBody counts the node's request as in flight until the body ends.
type answerBody struct {
	impatient
	node *node
	once sync.Once
}

func (b *answerBody) Close() error {
	b.once.Do(func() { b.node.active.Add(-1) })
	return b.ReadCloser.Close()
}

// watchResponse ends a response in whose middle the upstream sends nothing for too long.
// An upgraded connection may be silent for as long as both ends like.
func watchResponse(res *http.Response, n *node, limit time.Duration) *http.Response {
	if res.StatusCode == http.StatusSwitchingProtocols {
		n.active.Add(-1)
		return res
	}
	b, body := &answerBody{node: n}, res.Body
	b.init(body, limit, func() { _ = body.Close() })
	res.Body = b
	return res
}

// modify puts the fields of our limits in place of those of the upstream. They go to the
// client's answer at once; the upstream's fields are added to it afterwards.
func (x *exchange) modify(res *http.Response) error {
	if res.StatusCode < 100 {
		return fmt.Errorf("status %d of the upstream is none of HTTP", res.StatusCode)
	}
	x.proxy.FlushInterval = flushEvery
	if res.ContentLength >= 0 && res.ContentLength <= onePiece {
		x.proxy.FlushInterval = 0
	}
	x.body.closing(res.Header)
	if len(x.limits) > 0 {
		ours := x.w.Header()
		x.writeHeaders(ours)
		for name := range ours {
			delete(res.Header, name)
		}
	}
	return nil
}

// failed answers for an upstream that gave no response.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	answer := &badGateway
	var timeout net.Error
	switch {
	case x.body != nil && x.body.late.Load():
		answer = &slowClient
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone
	case x.body != nil && x.body.bad.Load():
		answer = &badBody
	case errors.As(err, &timeout) && timeout.Timeout():
		answer = &tooSlow
		x.g.quiet.log("upstream too slow", "route", x.rt.ID, "error", err)
	default:
		x.g.quiet.log("upstream failed", "route", x.rt.ID, "error", err)
	}
	x.writeHeaders(w.Header())
	x.body.closing(w.Header())
	answer.write(w)
}

// buffers are what bodies are copied through.
var buffers = bufferPool{pool: sync.Pool{New: func() any { return new([bufferSize]byte) }}}

const bufferSize = 32 << 10

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte { return p.pool.Get().(*[bufferSize]byte)[:] }

func (p *bufferPool) Put(b []byte) {
	if cap(b) >= bufferSize {
		p.pool.Put((*[bufferSize]byte)(b[:bufferSize]))
	}
}
