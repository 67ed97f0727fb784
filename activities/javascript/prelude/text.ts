import type { Kit } from '../kit.ts'

/** TextEncoder, TextDecoder, atob and btoa, as browsers have them. Bytes go to the host one in a character. */
export function defineText(kit: Kit): void {
  const STEP = 8_192
  const toBytes = (text: string): Uint8Array => {
    const bytes = new Uint8Array(text.length)
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i)
    return bytes
  }
  const fromBytes = (bytes: Uint8Array): string => {
    let text = ''
    for (let i = 0; i < bytes.length; i += STEP) {
      text += String.fromCharCode.apply(null, [...bytes.subarray(i, i + STEP)])
    }
    return text
  }
  const readView = (given: ArrayBuffer | ArrayBufferView): Uint8Array =>
    ArrayBuffer.isView(given)
      ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength)
      : new Uint8Array(given)
  class TextEncoder {
    get encoding() {
      return 'utf-8'
    }
    encode(text: unknown = ''): Uint8Array {
      return toBytes(kit.host('encode', { text: String(text), encoding: 'utf8' }) as string)
    }
  }
  class TextDecoder {
    readonly encoding: string
    constructor(encoding: unknown = 'utf-8') {
      const name = String(encoding).toLowerCase()
      if (!['utf-8', 'utf8', 'utf-16le', 'latin1'].includes(name)) {
        throw new RangeError(`there is no encoding "${name}"; there are utf-8, utf-16le, latin1`)
      }
      this.encoding = name.replace('utf8', 'utf-8')
    }
    decode(given?: ArrayBuffer | ArrayBufferView): string {
      if (given === undefined) return ''
      const bytes = readView(given)
      const encoding = this.encoding === 'utf-16le' ? 'utf16le' : this.encoding
      const text = kit.host('decode', { bytes: fromBytes(bytes), encoding }) as string
      return text.replace(/^\uFEFF/, '')
    }
  }
  kit.define('TextEncoder', TextEncoder)
  kit.define('TextDecoder', TextDecoder)
  kit.define('btoa', (text: unknown) => {
    const latin = String(text)
    for (let i = 0; i < latin.length; i += 1) {
      if (latin.charCodeAt(i) > 255) throw new RangeError('btoa takes characters up to U+00FF only')
    }
    return kit.host('decode', { bytes: latin, encoding: 'base64' })
  })
  kit.define('atob', (text: unknown) => {
    const plain = String(text).replace(/[\t\n\f\r ]/g, '')
    const bare = plain.length % 4 === 0 ? plain.replace(/={1,2}$/, '') : plain
    if (bare.length % 4 === 1 || !/^[A-Za-z0-9+/]*$/.test(bare)) {
      throw new RangeError('atob takes base64 only')
    }
    return kit.host('encode', { text: bare, encoding: 'base64' })
  })
}
