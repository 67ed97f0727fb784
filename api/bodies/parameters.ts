const PARAMETER = /\s*;\s*([^=;\s"]{1,100})\s*=\s*(?:"((?:[^"\\]|\\[\s\S])*)"|([^;]*))/y

/**
 * The parameters of a header such as Content-Type or Content-Disposition, by their names in lower case; the first of a
 * name counts. In a quoted value only quotes and backslashes are escaped: names of files have backslashes, too.
 */
export function readParameters(header: string): Map<string, string> {
  const found = new Map<string, string>()
  PARAMETER.lastIndex = Math.max(0, header.indexOf(';'))
  for (let match = PARAMETER.exec(header); match; match = PARAMETER.exec(header)) {
    const [, name, quoted, token] = match
    const key = name!.toLowerCase()
    if (!found.has(key)) found.set(key, quoted?.replace(/\\(["\\])/g, '$1') ?? token!.trim())
  }
  return found
}
