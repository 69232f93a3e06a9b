package config

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/escapement-io/escapement/internal/config/tree"
)

// consumerSources remembers where consumers are defined.
type consumerSources struct {
	names map[string]int // to the line
	keys  map[string]int
}

// readConsumers reads the native form: a trusted header, or keys by name.
func (b *builder) readConsumers(v tree.Value) {
	o, ok := v.Object()
	if !ok {
		return
	}
	header, has := o.Get("header")
	trusted, trusts := o.Get("trusted")
	if has {
		if s, ok := headerName(header); ok {
			b.config.Consumers.Header = s
		}
		if !trusts {
			o.Fail("trusted is missing: the header would be believed from nobody", "list the networks of the peers that set it, such as trusted: [127.0.0.0/8]")
		}
	}
	if trusts {
		b.config.Consumers.Trusted = prefixes(trusted)
		if !has {
			trusted.Fail("trusted without a header", "write header: NAME, or remove trusted")
		}
		if slices.ContainsFunc(b.config.Consumers.Trusted, everybody) {
			trusted.Warn("everybody is trusted to say who they are", "list only the networks of your own proxies")
		}
	}
	if v, ok := o.Get("keys"); ok {
		entries, _ := v.Entries(MaxConsumers)
		for _, e := range entries {
			name, ok := consumerName(e.Key)
			key, good := b.secret(e.Value)
			if ok && good {
				b.addConsumer(e.Key, e.Value, name, key)
			}
		}
	}
	o.Done()
}

// readConsumerList reads APISIX consumers.
func (b *builder) readConsumerList(v tree.Value) {
	items, _ := v.Items(MaxConsumers)
	for _, item := range items {
		o, ok := item.Object()
		if !ok {
			continue
		}
		o.Skip("id", "desc", "labels", "create_time", "update_time")
		nameValue, has := o.Need("username", "write the consumer's name")
		name := ""
		if has {
			name, has = consumerName(nameValue)
		}
		if v, ok := o.Get("plugins"); ok {
			b.readConsumerPlugins(v, nameValue, name, has)
		}
		o.Refuse("is not supported", "remove it, or use --ignore-unsupported to leave it out", "group_id")
		o.Done()
	}
}

func (b *builder) readConsumerPlugins(v, nameValue tree.Value, name string, named bool) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, ok := o.Get("key-auth"); ok {
		if auth, ok := v.Object(); ok {
			if v, ok := auth.Need("key", "write the key that the consumer sends"); ok {
				if key, ok := b.secret(v); ok && named {
					b.addConsumer(nameValue, v, name, key)
				}
			}
			auth.Done()
		}
	}
	b.refuseOtherPlugins(o, "on a consumer")
}

// addConsumer records a consumer and its key; neither may be there already.
func (b *builder) addConsumer(nameValue, keyValue tree.Value, name, key string) {
	c := &b.consumers
	if c.names == nil {
		c.names, c.keys = map[string]int{}, map[string]int{}
		b.config.Consumers.KeyAuth = map[string]string{}
	}
	if line, ok := c.names[name]; ok {
		nameValue.Fail(fmt.Sprintf("the consumer %s is already on line %d", name, line), "give each consumer its own name")
		return
	}
	c.names[name] = nameValue.Node.Place.Line
	if line, ok := c.keys[key]; ok {
		keyValue.Fail(fmt.Sprintf("the same key as on line %d", line), "give each consumer its own key")
		return
	}
	c.keys[key] = keyValue.Node.Place.Line
	b.config.Consumers.KeyAuth[key] = name
	i, _ := slices.BinarySearch(b.config.Consumers.Names, name)
	b.config.Consumers.Names = slices.Insert(b.config.Consumers.Names, i, name)
}

func consumerName(v tree.Value) (string, bool) {
	s, ok := v.Word()
	if ok && len(s) > 256 {
		v.Fail(fmt.Sprintf("%d bytes long", len(s)), "use at most 256")
		return "", false
	}
	return s, ok
}

var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

func headerName(v tree.Value) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if !token.MatchString(s) {
		v.Fail(v.Quote()+" is not the name of a header", "use letters, digits and -, such as X-Consumer")
		return "", false
	}
	return textproto.CanonicalMIMEHeaderKey(s), true
}

// headerVariable is a header's name as it stands in http_NAME.
func headerVariable(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

var environment = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// secret reads a text that is never shown again: as written, with ${NAME} replaced from
// the environment, or the content of a file named file:PATH.
func (b *builder) secret(v tree.Value) (string, bool) {
	v.Hide()
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if b.form != native {
		return b.apisixSecret(v, s)
	}
	if name, isFile := strings.CutPrefix(s, "file:"); isFile {
		data, err := b.options.ReadFile(name)
		if err != nil {
			v.Fail(fmt.Sprintf("cannot read the secret: %v", err), "write file: and the path of a file that can be read")
			return "", false
		}
		s = strings.TrimRight(string(data), "\r\n")
	} else {
		s = environment.ReplaceAllStringFunc(s, func(ref string) string {
			name := ref[2 : len(ref)-1]
			value, found := b.options.LookupEnv(name)
			if !found {
				v.Fail(fmt.Sprintf("the environment variable %s is not set", name), "set it before the start")
				ok = false
			}
			return value
		})
		if rest := environment.ReplaceAllString(v.Node.Text, ""); strings.Contains(rest, "${") {
			v.Fail("a reference to the environment that cannot be read", "write ${NAME}, with letters, digits and _ in the name")
			return "", false
		}
	}
	if ok && s == "" {
		v.Fail("the secret is empty", "write a value, or remove the key")
		return "", false
	}
	return s, ok
}

// apisixSecret reads $env://NAME; ${{NAME}} is replaced before.
func (b *builder) apisixSecret(v tree.Value, s string) (string, bool) {
	if strings.HasPrefix(s, "$secret://") {
		v.Unsupported("a reference to a secret manager is not supported", "use $env://NAME or ${{NAME}}")
		return "", false
	}
	name, isEnv := strings.CutPrefix(s, "$env://")
	if !isEnv {
		return s, true
	}
	value, found := b.options.LookupEnv(name)
	if !found || value == "" {
		v.Fail(fmt.Sprintf("the environment variable %s is not set", name), "set it before the start")
		return "", false
	}
	return value, true
}
