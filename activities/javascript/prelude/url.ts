import type { Kit } from '../kit.ts'

/** URLSearchParams, as browsers have it. The host reads and writes it. `changed` is for the URL that it belongs to. */
export function defineSearchParams(kit: Kit): void {
  class URLSearchParams {
    #pairs: [string, string][]
    #changed: (text: string) => void
    constructor(given: unknown = '', changed: (text: string) => void = () => {}) {
      this.#changed = changed
      if (typeof given === 'object' && given !== null) {
        const pairs = Symbol.iterator in given ? [...(given as Iterable<unknown[]>)] : Object.entries(given)
        this.#pairs = pairs.map(([name, value]) => [String(name), String(value)])
      } else this.#pairs = kit.host('readQuery', String(given)) as [string, string][]
    }
    #change(pairs: [string, string][]): void {
      this.#pairs = pairs
      this.#changed(this.toString())
    }
    get size() {
      return this.#pairs.length
    }
    append(name: unknown, value: unknown): void {
      this.#change([...this.#pairs, [String(name), String(value)]])
    }
    delete(name: unknown, value?: unknown): void {
      const goes = ([key, found]: [string, string]) =>
        key === String(name) && (value === undefined || found === String(value))
      this.#change(this.#pairs.filter((pair) => !goes(pair)))
    }
    get(name: unknown): string | null {
      return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null
    }
    getAll(name: unknown): string[] {
      return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value)
    }
    has(name: unknown, value?: unknown): boolean {
      return this.getAll(name).some((found) => value === undefined || found === String(value))
    }
    set(name: unknown, value: unknown): void {
      const at = this.#pairs.findIndex(([key]) => key === String(name))
      if (at < 0) {
        this.append(name, value)
        return
      }
      const rest = this.#pairs.filter(([key], i) => i <= at || key !== String(name))
      rest[at] = [String(name), String(value)]
      this.#change(rest)
    }
    sort(): void {
      this.#change([...this.#pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    }
    forEach(call: (value: string, name: string, all: unknown) => void): void {
      for (const [name, value] of this.#pairs) call(value, name, this)
    }
    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value]
    }
    *keys() {
      for (const [name] of this.#pairs) yield name
    }
    *values() {
      for (const [, value] of this.#pairs) yield value
    }
    [Symbol.iterator]() {
      return this.entries()
    }
    toString(): string {
      return kit.host('writeQuery', this.#pairs) as string
    }
  }

  kit.define('URLSearchParams', URLSearchParams)
}

/** URL, as browsers have it: after URLSearchParams, which it needs. The host reads and writes it. */
export function defineUrl(kit: Kit): void {
  type Parts = Record<string, string>
  type Params = new (given: string | undefined, changed: (text: string) => void) => object
  const { URLSearchParams } = globalThis as unknown as { URLSearchParams: Params }
  const read = (href: unknown, base?: unknown): Parts | null =>
    kit.host('url', {
      href: String(href),
      ...(base === undefined ? {} : { base: String(base) }),
    }) as Parts | null

  class URL {
    #parts: Parts
    #query: object | undefined
    constructor(href: unknown, base?: unknown) {
      const parts = read(href, base)
      if (parts === null) throw new TypeError(`"${String(href).slice(0, 200)}" is not a URL`)
      this.#parts = parts
    }
    static canParse(href: unknown, base?: unknown): boolean {
      return read(href, base) !== null
    }
    static parse(href: unknown, base?: unknown): URL | null {
      return URL.canParse(href, base) ? new URL(href, base) : null
    }
    get searchParams(): object {
      this.#query ??= new URLSearchParams(this.#parts.search, (text) => this._set('search', text, true))
      return this.#query
    }
    toString(): string {
      return this.#parts.href!
    }
    toJSON(): string {
      return this.#parts.href!
    }
    _get(part: string): string {
      return this.#parts[part]!
    }
    _set(part: string, value: string, byQuery: boolean): void {
      const parts = kit.host('url', { href: this.#parts.href, part, value }) as Parts | null
      if (parts !== null) this.#parts = parts
      if (!byQuery) this.#query = undefined
    }
  }
  const { _get, _set } = URL.prototype
  const names = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port']
  for (const part of [...names, 'pathname', 'search', 'hash']) {
    Object.defineProperty(URL.prototype, part, {
      get() {
        return _get.call(this, part)
      },
      set(value: unknown) {
        if (part === 'href' && !URL.canParse(value)) throw new TypeError('the value is not a URL')
        if (part !== 'origin') _set.call(this, part, String(value), false)
      },
      enumerable: true,
      configurable: true,
    })
  }
  kit.define('URL', URL)
}
