// Package docs checks the tables and numbers of the documents in this folder against the
// code, and draws their pictures.
package docs
