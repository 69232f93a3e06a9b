package limitcount

import (
	"fmt"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// RefuseShared reports that state outside of this process is asked for. Everything about
// it has been read and checked before; to allow it, remove this and its callers.
func RefuseShared(v tree.Value, what string) {
	v.Fail(what+" is not available yet", "keep the state in this process: policy: local with sync_interval: -1, and no store")
}

// readPolicy reads where the state lives, and how often instances agree.
func (c *Conf) readPolicy(o *tree.Object) {
	at := o.Value
	if v, ok := o.Get("policy"); ok {
		at = v
		if s, ok := v.OneOf("local", "redis", "redis-cluster", "redis-sentinel"); ok {
			c.Policy = s
		}
	}
	switch c.Policy {
	case "redis":
		readServer(o)
	case "redis-cluster":
		readCluster(o)
	case "redis-sentinel":
		readSentinel(o)
	}
	ignoreUnused(o, c.Policy)
	sync, has := o.Get("sync_interval")
	if has {
		c.readSync(sync)
	}
	if c.Policy != "local" {
		RefuseShared(at, "policy: "+c.Policy)
	} else if c.SyncInterval > 0 {
		RefuseShared(sync, "sync_interval with policy: local")
	}
}

// readSync reads −1, or at least 0.1 and less than the window where that is a number.
func (c *Conf) readSync(v tree.Value) {
	s, ok := v.Number()
	switch {
	case !ok || s == -1:
		return
	case s < 0.1:
		v.Fail("sync_interval should not be smaller than 0.1", "use -1 to ask the store on every request, or at least 0.1")
		return
	case s > maxWindow:
		v.Fail("sync_interval should be smaller than time_window", "5 % of the window is a good start")
		return
	}
	c.SyncInterval = time.Duration(s * float64(time.Second)).Round(time.Millisecond)
	for _, r := range c.Rules {
		if r.Window.Template == nil && r.Window.N > 0 && s >= float64(r.Window.N) {
			v.Fail("sync_interval should be smaller than time_window", fmt.Sprintf("5 %% of the window is a good start, here %.3g", float64(r.Window.N)/20))
			return
		}
	}
}

// number reads an optional whole number from least on.
func number(o *tree.Object, key string, least, most int64) {
	if v, ok := o.Get(key); ok {
		v.Int(least, most)
	}
}

func boolean(o *tree.Object, keys ...string) {
	for _, key := range keys {
		if v, ok := o.Get(key); ok {
			v.Bool()
		}
	}
}

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

func readServer(o *tree.Object) {
	if v, ok := o.Need("redis_host", "write the name or address of the Redis server"); ok {
		atLeast(v, 2)
	}
	number(o, "redis_port", 1, 65535)
	credentials(o, "redis_username", "redis_password")
	number(o, "redis_database", 0, tree.MaxInt)
	number(o, "redis_timeout", 1, longest)
	boolean(o, "redis_ssl", "redis_ssl_verify")
	readKeepalive(o)
}

func readKeepalive(o *tree.Object) {
	number(o, "redis_keepalive_timeout", 1000, longest)
	number(o, "redis_keepalive_pool", 1, 1_000_000)
}

func readCluster(o *tree.Object) {
	if v, ok := o.Need("redis_cluster_nodes", "list the store nodes as host:port"); ok {
		for _, item := range v.Texts(1000) {
			if atLeast(item, 2); len(item.Node.Text) > 100 {
				item.Fail("longer than 100 characters", "write host:port")
			}
		}
	}
	if v, ok := o.Need("redis_cluster_name", "give the cluster a name"); ok {
		v.Text()
	}
	credentials(o, "redis_password")
	number(o, "redis_timeout", 1, longest)
	boolean(o, "redis_cluster_ssl", "redis_cluster_ssl_verify")
	readKeepalive(o)
}

func readSentinel(o *tree.Object) {
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
			if v, ok := s.Need("host", "write the name or address of the sentinel"); ok {
				atLeast(v, 2)
			}
			if v, ok := s.Need("port", "write its port, such as 26379"); ok {
				v.Int(1, 65535)
			}
			s.Done()
		}
	}
	if v, ok := o.Need("redis_master_name", "write the name under which the sentinels know the master"); ok {
		v.Text()
	}
	if v, ok := o.Get("redis_role"); ok {
		if s, ok := v.OneOf("master", "slave"); ok && s == "slave" {
			v.Fail("a limit cannot be kept on a replica", "use redis_role: master")
		}
	}
	number(o, "redis_connect_timeout", 1, longest)
	number(o, "redis_read_timeout", 1, longest)
	number(o, "redis_keepalive_timeout", 1000, longest)
	number(o, "redis_database", 0, tree.MaxInt)
	credentials(o, "redis_username", "redis_password", "sentinel_username", "sentinel_password")
}

func atLeast(v tree.Value, length int) {
	if s, ok := v.Text(); ok && len(s) < length {
		v.Fail(fmt.Sprintf("%s is shorter than %d characters", v.Quote(), length), "write a host name or an address")
	}
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
