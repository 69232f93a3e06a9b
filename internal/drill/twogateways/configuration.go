package twogateways

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// limitName is the name of the limit under drill.
const limitName = "drill"

const (
	drillPath = "/drill"
	warmPath  = "/warm"
)

// object is a piece of a configuration.
type object = map[string]any

// configuration is what the gateways run: the limit under drill, and another that asks the
// store about every request, by which connections are made before the load.
func (o *Options) configuration(store object, upstream string) object {
	l := o.limit()
	limit := object{
		"algorithm": l.Algorithm.String(), "count": l.Rate.Count, "per": l.Rate.Per.String(), "key": []string{},
		"store": "redis", "on_failure": "deny",
	}
	if o.opened() {
		limit["align"] = l.Align.String()
	}
	if l.Sync > 0 {
		limit["sync"] = object{"interval": l.Sync.String(), "mode": l.SyncMode.String()}
	}
	warm := object{"algorithm": "token_bucket", "count": 1_000_000, "per": "1s", "key": []string{}, "store": "redis", "on_failure": "deny"}
	to := object{"nodes": object{upstream: 1}}
	return object{
		"stores": object{"redis": store},
		"limits": object{limitName: limit, "warm": warm},
		"routes": []object{
			{"uri": drillPath, "limits": []string{limitName}, "upstream": to},
			{"uri": warmPath, "limits": []string{"warm"}, "upstream": to},
		},
	}
}

// write puts a configuration into a file of the folder.
func write(dir string, c object) (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("drill: %w", err)
	}
	file := filepath.Join(dir, "gateway.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return "", fmt.Errorf("drill: %w", err)
	}
	return file, nil
}

// store says where the store is. A gateway under drill shares its machine with the load.
func store(where object) object {
	where["type"], where["deadline"] = "redis", "250ms"
	return where
}
