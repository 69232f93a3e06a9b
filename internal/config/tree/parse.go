package tree

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Parse reads a document in YAML, or in JSON if the file's name ends in .json. It is nil
// if the text is no document; the report then says why.
func Parse(r *Report, data []byte) *Node {
	if !clean(r, data) {
		return nil
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n")
	if strings.HasSuffix(strings.ToLower(r.File), ".json") {
		return parseJSON(r, text)
	}
	return parseYAML(r, text)
}

// clean refuses what no editor writes on purpose, before a parser sees it.
func clean(r *Report, data []byte) bool {
	switch {
	case len(data) > MaxBytes:
		r.Add(Place{}, "", Error, fmt.Sprintf("larger than %d MiB", MaxBytes>>20), "split the configuration, or check that this is the right file")
		return false
	case len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))) == 0:
		r.Add(Place{}, "", Error, "the file is empty", "write at least one limit or route")
		return false
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		r.Add(Place{1, 1}, "", Error, "the file is UTF-16", "save it as UTF-8")
		return false
	}
	for at := 0; at < len(data); {
		c, n := utf8.DecodeRune(data[at:])
		if c == utf8.RuneError && n == 1 {
			r.Add(placeOf(string(data[:at])), "", Error, fmt.Sprintf("byte 0x%02x is not UTF-8", data[at]), "save the file as UTF-8")
			return false
		}
		if c == '\r' && !bytes.HasPrefix(data[at:], []byte("\r\n")) {
			r.Add(placeOf(string(data[:at])), "", Error, "a carriage return without a line feed", "end lines with a line feed, or with both")
			return false
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			r.Add(placeOf(string(data[:at])), "", Error, fmt.Sprintf("control character 0x%02x", c), "remove it, or write it escaped in double quotes")
			return false
		}
		at += n
	}
	return true
}

// placeOf is the place just behind text.
func placeOf(before string) Place {
	before = strings.TrimPrefix(before, "\uFEFF")
	return Place{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])}
}
