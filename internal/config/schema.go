package config

import _ "embed"

// Schema is the native form as a JSON Schema (draft 2020-12): the shape of a file, for
// editors. Whatever Parse accepts is valid under it.
//
//go:embed config.schema.json
var Schema string
