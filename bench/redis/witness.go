package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/bench/stats"
	"github.com/escapement-io/escapement/redisstore"
)

// What the witness costs the server are the three numbers that tell a script where the
// line is, and the lines that hold its clock to them. The script as the store sends it is
// run in turn with one that trusts the clock; the text of both comes off the wire, so that
// it is the one in use.

// rides are how many decisions the measured calls carry.
var rides = []int{1, 16, 64}

// trusting is the script of a token bucket without the witness.
func trusting(text string) (string, error) {
	for _, change := range [...][2]string{
		{"local lo, hi, adj, margin, n, p, full, tick = struct.unpack('<dddddddd', ARGV[1])\n", "local margin, n, p, full, tick = struct.unpack('<ddddd', ARGV[1])\n"},
		{"local raw, now, text = 0, lo, ARGV[2]\nif adj == adj then\n", "local text = ARGV[2]\n"},
		{"raw = t[1] * 1000000 + t[2]\nnow = raw + adj\nif now > hi then now = hi end\nif now < lo then now = lo end\nend\n", "local raw = t[1] * 1000000 + t[2]\nlocal now = raw\n"},
	} {
		if strings.Count(text, change[0]) != 1 {
			return "", fmt.Errorf("the script does not read %q; adapt trusting", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return text, nil
}

// witnessShares is, per ride, what share of the time in the script the witness has, one
// figure for each round.
func witnessShares(s *server, rounds int) (map[int][]float64, error) {
	ctx := context.Background()
	if _, err := s.do(ctx, "FLUSHALL"); err != nil {
		return nil, err
	}
	text, args, err := sent(s.addr)
	if err != nil {
		return nil, err
	}
	without, err := trusting(text)
	if err != nil {
		return nil, err
	}
	if len(args[0]) != 8*8 {
		return nil, fmt.Errorf("the script's first argument has %d bytes, not eight doubles; adapt trusting", len(args[0]))
	}
	// The server's clock stays within the bounds for an hour.
	far := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Float64frombits(binary.LittleEndian.Uint64([]byte(args[0][:8])))+3.6e9))
	scripts := [2]variant{
		{text: text, shared: []string{args[0][:8] + string(far) + args[0][16:], args[1]}},
		{text: without, shared: []string{args[0][24:], args[1]}},
	}
	for i := range scripts {
		m, err := s.do(ctx, "SCRIPT", "LOAD", scripts[i].text)
		if err != nil {
			return nil, err
		}
		if scripts[i].sha, err = m.ToString(); err != nil {
			return nil, err
		}
	}
	shares := map[int][]float64{}
	for range rounds {
		for _, ride := range rides {
			var took [2][]float64
			for turn := range turns {
				for k := range 2 {
					i := (k + turn) % 2 // first one, then the other
					us, err := scriptTime(ctx, s, scripts[i], ride)
					if err != nil {
						return nil, err
					}
					took[i] = append(took[i], us)
				}
			}
			shares[ride] = append(shares[ride], 1-stats.Median(took[1])/stats.Median(took[0]))
		}
	}
	return shares, nil
}

// turns are how often in a round each of two scripts is timed.
const turns = 60

// variant is a script with the arguments that do not depend on the claims.
type variant struct {
	text   string
	shared []string
	sha    string
}

// scriptTime is the time in a script per call, by the server's own count.
func scriptTime(ctx context.Context, s *server, v variant, ride int) (float64, error) {
	_, before, err := s.spent(ctx)
	if err != nil {
		return 0, err
	}
	cmds := make([]rueidis.Completed, 16+256/ride)
	for i := range cmds {
		words := append([]string{"EVALSHA", v.sha, strconv.Itoa(ride)}, make([]string, ride)...)
		for k := range ride {
			words[3+k] = "client-" + strconv.Itoa(100_000+(i*ride+k)%manyKeys)
		}
		words = append(words, v.shared...)
		for range ride {
			words = append(words, "1")
		}
		cmds[i] = s.client.B().Arbitrary(words...).Build()
	}
	for _, r := range s.client.DoMulti(ctx, cmds...) {
		if err := r.Error(); err != nil {
			return 0, err
		}
	}
	_, after, err := s.spent(ctx)
	return (after - before) / float64(len(cmds)), err
}

// sent is the text and the arguments of the script that the store sends for one claim on a
// token bucket; the last argument is its cost.
func sent(addr string) (text string, args []string, err error) {
	var tap wiretap
	s, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}, Dial: tap.dial})
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = s.Close() }()
	plan, err := escapement.Limit{Name: "bench", Rate: escapement.PerSecond(perKey)}.Compile()
	if err != nil {
		return "", nil, err
	}
	ctx := context.Background()
	// The server must not know the script, or its text is not sent.
	c, err := connect(addr)
	if err != nil {
		return "", nil, err
	}
	defer c.Close()
	if err := c.Do(ctx, c.B().ScriptFlush().Build()).Error(); err != nil {
		return "", nil, err
	}
	if _, err := s.DecideOne(ctx, escapement.Claim{Plan: plan, Key: "client-0", Cost: 1}); err != nil {
		return "", nil, err
	}
	words, err := tap.find("EVAL", "client-0")
	if err != nil {
		return "", nil, err
	}
	return words[1], words[4:], nil
}

// wiretap keeps what its connections send.
type wiretap struct {
	mu  sync.Mutex
	all []*bytes.Buffer
}

type tapped struct {
	net.Conn
	tap *wiretap
	out *bytes.Buffer
}

func (t *wiretap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := new(bytes.Buffer)
	t.all = append(t.all, out)
	return &tapped{c, t, out}, nil
}

func (c *tapped) Write(b []byte) (int, error) {
	c.tap.mu.Lock()
	c.out.Write(b)
	c.tap.mu.Unlock()
	return c.Conn.Write(b)
}

// find is the first command of a name about a key that holds a text.
func (t *wiretap) find(name, key string) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.all {
		r := bufio.NewReader(bytes.NewReader(b.Bytes()))
		for {
			words, err := command(r)
			if err != nil {
				break // what follows was not sent yet
			}
			if len(words) > 6 && strings.EqualFold(words[0], name) && strings.Contains(words[3], key) {
				return words, nil
			}
		}
	}
	return nil, fmt.Errorf("the store has sent no %s about %s", name, key)
}

// command reads one command of the protocol.
func command(r *bufio.Reader) ([]string, error) {
	number := func(mark byte) (int, error) {
		l, err := r.ReadString('\n')
		if err != nil || l[0] != mark {
			return 0, fmt.Errorf("no %q in %q: %w", mark, l, errors.Join(err, errProtocol))
		}
		return strconv.Atoi(strings.TrimSpace(l[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	var words []string
	for range n {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		words = append(words, string(b[:size]))
	}
	return words, nil
}

var errProtocol = errors.New("not a command")
