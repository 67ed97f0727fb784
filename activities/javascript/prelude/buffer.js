/** Buffer, as code for Node.js uses it: the package of this name, which browsers use too. */
;(kit) => {
  kit.define('Buffer', kit.libraries.buffer.Buffer)
}
