import { findByteOrderMark, openDecoder } from '../charset.ts'

const HEAD = 1_024

/**
 * The encoding of XML by its first bytes: that of its byte order mark, else the one in its declaration; undefined if it
 * has neither, or one that is not known. Bytes that can be read as ASCII are not UTF-16, whatever the declaration says.
 */
export function findXmlEncoding(bytes: Uint8Array): string | undefined {
  const mark = findByteOrderMark(bytes)
  if (mark) return mark
  const head = Buffer.from(bytes.subarray(0, HEAD)).toString('latin1')
  const found = /^\s*<\?xml[^>]{0,200}\sencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(head)?.[1]
  if (found === undefined || /^utf-?16/i.test(found)) return undefined
  return openDecoder(found)?.encoding
}
