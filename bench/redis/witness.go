package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/bench/stats"
	"github.com/escapement-io/escapement/redisstore"
)

// What the witness costs the server are the three arguments that tell a script where the
// line is, and the lines that hold its clock to them. The script as the store sends it is
// run in turn with one that trusts the clock; the text of both comes off the wire, so that
// it is the one in use.

// rides are how many decisions the measured calls carry.
var rides = []int{1, 16, 64}

// trusting is a takes script without the witness.
func trusting(text string) (string, error) {
	const from, to = "local raw, now = 0, ARGV[1] + 0\n", "local margin, text = "
	i, j := strings.Index(text, from), strings.Index(text, to)
	if i < 0 || j < i {
		return "", errors.New("the script does not begin as it did when this was written; adapt trusting")
	}
	text = text[:i] + "local t = call('TIME')\nlocal raw = t[1] * 1000000 + t[2]\nlocal now = raw\n" + text[j:]
	return regexp.MustCompile(`ARGV\[(\d+)`).ReplaceAllStringFunc(text, func(at string) string {
		n, _ := strconv.Atoi(at[len("ARGV["):])
		return "ARGV[" + strconv.Itoa(n-3)
	}), nil
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
	lo, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the script's first argument: %w", err)
	}
	// The server's clock stays within the bounds for an hour.
	args[1] = strconv.FormatInt(lo+3_600_000_000, 10)
	scripts := [2]variant{{text, args[:len(args)-1], ""}, {without, args[3 : len(args)-1], ""}}
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
			if len(words) > 5 && strings.EqualFold(words[0], name) && strings.Contains(words[3], key) {
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
