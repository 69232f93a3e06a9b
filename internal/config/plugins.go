package config

import (
	"strings"

	"github.com/escapement-io/escapement/internal/config/limitcount"
	"github.com/escapement-io/escapement/internal/config/tree"
)

// keyAuth is the plugin that tells consumers by their keys.
const keyAuth = "key-auth"

func knownPlugin(name string) bool {
	return name == limitcount.Basic || name == limitcount.Advanced || name == keyAuth
}

// readRoutePlugins reads the plugins of a route.
func (b *builder) readRoutePlugins(v tree.Value, r *Route) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if p, ok := b.plugin(o, keyAuth); ok {
		r.KeyAuth = readKeyAuth(p)
	}
	for _, name := range []string{limitcount.Basic, limitcount.Advanced} {
		if p, ok := b.plugin(o, name); ok {
			b.addCompatible(p, name, r)
		}
	}
	b.refuseOtherPlugins(o, "on a route")
}

// plugin is the configuration of a plugin that is there and not switched off.
func (b *builder) plugin(plugins *tree.Object, name string) (*tree.Object, bool) {
	v, ok := plugins.Get(name)
	if !ok {
		return nil, false
	}
	o, ok := v.Object()
	if !ok {
		return nil, false
	}
	on := true
	if m, ok := o.Get("_meta"); ok {
		if meta, ok := m.Object(); ok {
			if d, ok := meta.Get("disable"); ok {
				off, _ := d.Bool()
				on = !off
			}
			meta.Refuse("is not supported", "remove it", "priority", "filter", "error_response", "pre_function")
			meta.Done()
		}
	}
	return o, on
}

// refuseOtherPlugins names the plugins that this gateway does not have. A name that
// differs from one it has by case and dashes only is a mistake, and never left out.
func (b *builder) refuseOtherPlugins(plugins *tree.Object, where string) {
	for _, f := range plugins.Node.Fields {
		if plugins.Asked(f.Key) {
			continue
		}
		if knownPlugin(strings.ReplaceAll(strings.ToLower(f.Key), "_", "-")) && !knownPlugin(f.Key) {
			continue // Done reports it
		}
		plugins.Refuse(where+" is not supported: this gateway has limit-count, limit-count-advanced and key-auth",
			"remove it, or use --ignore-unsupported to run without it", f.Key)
	}
	plugins.Done()
}

func readKeyAuth(o *tree.Object) *KeyAuth {
	k := &KeyAuth{Header: "apikey", Query: "apikey"}
	if v, ok := o.Get("header"); ok {
		if s, ok := headerName(v); ok {
			k.Header = s
		}
	}
	if v, ok := o.Get("query"); ok {
		if s, ok := v.Text(); ok {
			k.Query = s
		}
	}
	if v, ok := o.Get("hide_credentials"); ok {
		k.HideCredentials, _ = v.Bool()
	}
	o.Refuse("is not supported", "remove it", "anonymous_consumer", "realm")
	o.Done()
	return k
}

// readPlugins checks a file that is nothing but plugins, as they are written below
// plugins of a route.
func (b *builder) readPlugins(root *tree.Object) {
	r := &Route{ID: "plugins"}
	b.readRoutePlugins(root.Value, r)
	b.config.Limits = r.Limits
}

// readStandalone reads an APISIX standalone file.
func (b *builder) readStandalone(root *tree.Object, data []byte) {
	if !strings.HasSuffix(strings.ToLower(b.report.File), ".json") && !endsInMark(data) {
		lines := strings.Count(strings.TrimRight(string(data), " \t\r\n"), "\n") + 1
		b.report.Add(tree.Place{Line: lines, Col: 1}, "", Error, "the file does not end in "+endMark+": it may be half written", "add a last line "+endMark)
	}
	b.metadata = map[string]limitcount.Metadata{}
	if v, ok := root.Get("plugin_metadata"); ok {
		b.readMetadata(v)
	}
	if v, ok := root.Get("consumers"); ok {
		b.readConsumerList(v)
	}
	if v, ok := root.Get("upstreams"); ok {
		b.readUpstreams(v)
	}
	if v, ok := root.Get("routes"); ok {
		b.readRoutes(v)
	}
	root.Refuse("is not supported", "remove it, or use --ignore-unsupported to leave it out",
		"services", "global_rules", "plugin_configs", "consumer_groups", "stream_routes", "ssls", "protos", "secrets", "plugins", "credentials")
	root.Done()
}

func (b *builder) readMetadata(v tree.Value) {
	items, _ := v.Items(1000)
	for _, item := range items {
		o, ok := item.Object()
		if !ok {
			continue
		}
		v, ok := o.Need("id", "write the plugin's name")
		if !ok {
			continue
		}
		name, ok := v.Text()
		if !ok {
			continue
		}
		if name != limitcount.Basic && name != limitcount.Advanced {
			v.Unsupported("metadata of the plugin "+v.Quote()+" is not supported", "remove it, or use --ignore-unsupported to leave it out")
			continue
		}
		if _, twice := b.metadata[name]; twice {
			v.Fail("the metadata of "+name+" is there twice", "remove one of the two")
		}
		b.metadata[name] = limitcount.ReadMetadata(o)
		o.Done()
	}
}
