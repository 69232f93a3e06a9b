package limitcount

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// Redis is the server of a Redis policy.
type Redis struct {
	Mode    string // single, cluster or sentinel
	Addrs   []string
	Primary string
	DB      int
	Timeout time.Duration // zero: not set
	TLS     bool
	Verify  bool
}

// Credentials are the options that hold credentials.
var Credentials = []string{"redis_username", "redis_password", "sentinel_username", "sentinel_password"}

// readPolicy reads where the state lives, and how often instances agree.
func (c *Conf) readPolicy(o *tree.Object) {
	if v, ok := o.Get("policy"); ok {
		if s, ok := v.OneOf("local", "redis", "redis-cluster", "redis-sentinel"); ok {
			c.Policy = s
		}
	}
	switch c.Policy {
	case "redis":
		c.Redis = readServer(o)
	case "redis-cluster":
		c.Redis = readCluster(o)
	case "redis-sentinel":
		c.Redis = readSentinel(o)
	}
	ignoreUnused(o, c.Policy)
	c.readSync(o)
}

// number reads an optional whole number from least on.
func number(o *tree.Object, key string, least, most int64) (n int64) {
	if v, ok := o.Get(key); ok {
		n, _ = v.Int(least, most)
	}
	return n
}

func boolean(o *tree.Object, key string) (yes bool) {
	if v, ok := o.Get(key); ok {
		yes, _ = v.Bool()
	}
	return yes
}

// timeout reads milliseconds. The longest a decision can wait is 10 s.
func timeout(o *tree.Object, key string) time.Duration {
	d := time.Duration(number(o, key, 1, longest)) * time.Millisecond
	if d > longestWait {
		o.At(key).Warn(fmt.Sprintf("a decision waits for the store at most %v", longestWait), "write a smaller "+key)
		d = longestWait
	}
	return d
}

const longestWait = 10 * time.Second

// credentials reads texts that no message shows.
func credentials(o *tree.Object, keys ...string) {
	for _, key := range keys {
		if v, ok := o.Get(key); ok {
			v.Hide()
			v.Text()
		}
	}
}

const longest = 24 * 3600 * 1000 // milliseconds

func readServer(o *tree.Object) *Redis {
	r := &Redis{Mode: "single"}
	host, port := "", int64(6379)
	if v, ok := o.Need("redis_host", "write the name or address of the Redis server"); ok {
		host = atLeast(v, 2)
	}
	if n := number(o, "redis_port", 1, 65535); n > 0 {
		port = n
	}
	r.Addrs = []string{net.JoinHostPort(strings.Trim(host, "[]"), strconv.FormatInt(port, 10))}
	credentials(o, "redis_username", "redis_password")
	r.DB = int(number(o, "redis_database", 0, maxDatabase))
	r.Timeout = timeout(o, "redis_timeout")
	r.TLS, r.Verify = boolean(o, "redis_ssl"), boolean(o, "redis_ssl_verify")
	readKeepalive(o)
	return r
}

const maxDatabase = 1 << 20

func readKeepalive(o *tree.Object) {
	number(o, "redis_keepalive_timeout", 1000, longest)
	number(o, "redis_keepalive_pool", 1, 1_000_000)
}

func readCluster(o *tree.Object) *Redis {
	r := &Redis{Mode: "cluster"}
	if v, ok := o.Need("redis_cluster_nodes", "list the store nodes as host:port"); ok {
		for _, item := range v.Texts(1000) {
			node := atLeast(item, 2)
			if len(node) > 100 {
				item.Fail("longer than 100 characters", "write host:port")
			} else if _, port, err := net.SplitHostPort(node); len(node) > 1 && (err != nil || port == "") {
				item.Fail(item.Quote()+" is not host:port", "write an address and a port, such as 10.0.0.1:6379")
			}
			r.Addrs = append(r.Addrs, node)
		}
	}
	if v, ok := o.Need("redis_cluster_name", "give the cluster a name"); ok {
		v.Text()
	}
	credentials(o, "redis_password")
	r.Timeout = timeout(o, "redis_timeout")
	r.TLS, r.Verify = boolean(o, "redis_cluster_ssl"), boolean(o, "redis_cluster_ssl_verify")
	readKeepalive(o)
	return r
}

func readSentinel(o *tree.Object) *Redis {
	r := &Redis{Mode: "sentinel"}
	if v, ok := o.Need("redis_sentinels", "list the sentinels as {host, port}"); ok {
		items, isList := v.Items(100)
		if isList && len(items) == 0 {
			v.Fail("the list is empty", "write at least one {host, port}")
		}
		for _, item := range items {
			s, ok := item.Object()
			if !ok {
				continue
			}
			host, port := "", int64(0)
			if v, ok := s.Need("host", "write the name or address of the sentinel"); ok {
				host = atLeast(v, 2)
			}
			if v, ok := s.Need("port", "write its port, such as 26379"); ok {
				port, _ = v.Int(1, 65535)
			}
			r.Addrs = append(r.Addrs, net.JoinHostPort(strings.Trim(host, "[]"), strconv.FormatInt(port, 10)))
			s.Done()
		}
	}
	if v, ok := o.Need("redis_master_name", "write the name under which the sentinels know the master"); ok {
		r.Primary, _ = v.Text()
	}
	if v, ok := o.Get("redis_role"); ok {
		if s, ok := v.OneOf("master", "slave"); ok && s == "slave" {
			v.Fail("a limit cannot be kept on a replica", "use redis_role: master")
		}
	}
	number(o, "redis_connect_timeout", 1, longest)
	r.Timeout = timeout(o, "redis_read_timeout")
	number(o, "redis_keepalive_timeout", 1000, longest)
	r.DB = int(number(o, "redis_database", 0, maxDatabase))
	credentials(o, Credentials...)
	return r
}

func atLeast(v tree.Value, length int) string {
	s, ok := v.Text()
	if ok && len(s) < length {
		v.Fail(fmt.Sprintf("%s is shorter than %d characters", v.Quote(), length), "write a host name or an address")
	}
	return s
}

// ignoreUnused reports options of another policy: they would have no effect.
func ignoreUnused(o *tree.Object, policy string) {
	for _, f := range o.Node.Fields {
		if o.Asked(f.Key) || !strings.HasPrefix(f.Key, "redis_") && !strings.HasPrefix(f.Key, "sentinel_") {
			continue
		}
		for _, key := range redisOptions {
			if f.Key == key {
				o.Skip(f.Key)
				o.At(f.Key).Warn(fmt.Sprintf("%s has no effect with policy: %s", f.Key, policy), "remove it, or change the policy")
			}
		}
	}
}

var redisOptions = []string{
	"redis_host", "redis_port", "redis_username", "redis_password", "redis_database", "redis_timeout",
	"redis_ssl", "redis_ssl_verify", "redis_keepalive_timeout", "redis_keepalive_pool",
	"redis_cluster_nodes", "redis_cluster_name", "redis_cluster_ssl", "redis_cluster_ssl_verify",
	"redis_sentinels", "redis_master_name", "redis_role", "redis_connect_timeout", "redis_read_timeout",
	"sentinel_username", "sentinel_password",
}
