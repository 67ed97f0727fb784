// n8n's methods of texts and numbers.
;(kit) => {
  const { kinds, fail } = kit.n8n
  const ask = kit.host

  // Signs and abbreviations of currencies, which may stand in a number.
  const CURRENCIES =
    `Lek ؋ $ ƒ ₼ Br BZ$ $b KM P лв Rb ៛ ¥ ₡ kn ₱ Kč kr RD$ £ € ¢ Q L Ft ₹ Rp ﷼ ₪ J$ ₩ ₭ ден RM ₨
    ₮ MT C$ ₦ B/. Gs S/. zł lei ₽ Дин. S R CHF NT$ ฿ TT$ ₺ ₴ $U Bs ₫ Z$`
      .split(/\s+/)
      .map((sign) => sign.replace(/[$./]/g, '\\$&'))
  const CURRENCY = new RegExp(CURRENCIES.join('|'), 'gu')
  const bare = (text) => text.replace(CURRENCY, '')

  const HOST = String.raw`(?:[-\w]+\.)+(?:[a-zA-Z]{2,}|xn--[a-zA-Z0-9]+)|localhost|\d{1,3}(?:\.\d{1,3}){3}`
  const BEHIND = String.raw`(?::\d+)?(?:\/[^\s?]*)?(?:\?[^\s#]*)?(?:#[^\s]*)?`
  const DOMAIN = new RegExp(`^(?:www\\.)?(?:${HOST})${BEHIND}$`, 'i')
  const DOMAIN_IN = new RegExp(
    `^(?:(?:https?|ftp):\\/\\/)?(?:mailto:)?(?:\\/\\/)?((?:www\\.)?(?:${HOST}))${BEHIND}$`,
    'i',
  )
  const ADDRESS = `(?:https?|ftp):\\/\\/(?:www\\.)?(?:${HOST})(?::\\d+)?(?:\\/[^\\s?#]*)?(?:\\?[^\\s#]*)?(?=([^\\s]+#.*)?)#?[^\\s]*`
  const URL_ALONE = new RegExp(`^${ADDRESS}$`, 'i')
  const URL_IN = new RegExp(ADDRESS, 'i')
  const EMAIL =
    /(?:[^<>()[\]\\.,;:\s@"]+(?:\.[^<>()[\]\\.,;:\s@"]+)*|".+")@(?<domain>\[\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\]|(?:[a-zA-Z\-0-9]+\.)+[a-zA-Z]{2,})/
  const isEmail = (text) => EMAIL.test(text) && !text.includes(' ')

  const toInt = (text, radix) => {
    const number = Number.parseInt(bare(text), radix)
    return Number.isNaN(number) ? fail('cannot convert to integer') : number
  }
  const toFloat = (text) => {
    if (text.includes(',')) fail('cannot convert to float, expected . as decimal separator')
    const number = Number.parseFloat(bare(text))
    return Number.isNaN(number) ? fail('cannot convert to float') : number
  }

  const HASHES = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha3']

  /** What remove-markdown (MIT) does. */
  const removeMarkdown = (text) =>
    text
      .replace(/^([\s\t]*)([*\-+]|\d\.)\s+/gm, '$1')
      .replace(/\n={2,}/g, '\n')
      .replace(/~~/g, '')
      .replace(/`{3}.*\n/g, '')
      .replace(/<[\w|\s=':"(),;/0-9.-]+[>\\]/g, '')
      .replace(/^[=-]{2,}\s*$/g, '')
      .replace(/\[\^.+?\](: .*?$)?/g, '')
      .replace(/\s{0,2}\[.*?\]: .*?$/g, '')
      .replace(/!\[.*?\][[(].*?[\])]/g, '')
      .replace(/\[(.*?)\][[(].*?[\])]/g, '$1')
      .replace(/>/g, '')
      .replace(/^\s{1,2}\[(.*?)\]: (\S+)( ".*?")?\s*$/g, '')
      .replace(/^#{1,6}\s*([^#]*)\s*(#{1,6})?/gm, '$1')
      .replace(/([*_]{1,3})(\S.*?\S)\1/g, '$2')
      .replace(/(`{3,})(.*?)\1/gm, '$2')
      .replace(/^-{3,}\s*$/g, '')
      .replace(/`(.+?)`/g, '$1')
      .replace(/\n{2,}/g, '\n\n')

  const toSentenceCase = (text) => {
    let rest = text
    let done = ''
    for (let at = rest.search(/\p{L}/u); at >= 0; at = rest.search(/\p{L}/u)) {
      rest = rest.slice(0, at) + rest[at].toUpperCase() + rest.slice(at + 1).toLowerCase()
      const end = rest.search(/[!?.]/)
      if (end < 0) return done + rest
      done += rest.slice(0, end + 1)
      rest = rest.slice(end + 1)
    }
    return done + rest
  }

  const readPath = (text) => {
    const found = /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/(?=.)[^/?#]*([^?#]*)/.exec(text)
    return found ? found[1] || '/' : undefined
  }

  const readDateTime = (text) => {
    const { DateTime } = globalThis
    const options = { setZone: true }
    for (const read of [DateTime.fromISO, DateTime.fromHTTP, DateTime.fromRFC2822, DateTime.fromSQL]) {
      const date = read(text.trim(), options)
      if (date.isValid) return date
    }
    return DateTime.fromMillis(Date.parse(text.trim()))
  }
  const toDateTime = (text, format) => {
    const { DateTime } = globalThis
    let date
    try {
      if (['ms', 's', 'us', 'excel'].includes(format)) return kinds.Number.toDateTime(Number(text), format)
      if (format) return DateTime.fromFormat(text, format)
      date = readDateTime(text)
    } catch {
      date = undefined
    }
    return date?.isValid ? date : fail('cannot convert to Luxon DateTime')
  }
  kit.n8n.readDateTime = toDateTime

  kinds.String = {
    hash(text, given) {
      const algorithm = given?.toLowerCase() ?? 'md5'
      if (algorithm === 'base64') return ask('base64', { encode: text })
      if (HASHES.includes(algorithm)) return ask('digest', { algorithm, text })
      return fail(`Unknown algorithm ${algorithm}. Available algorithms are: ${HASHES.join()}, and Base64.`)
    },
    removeMarkdown,
    removeTags: (text) => text.replace(/<[^>]*>?/gm, ''),
    toDate(text) {
      const date = new Date(Date.parse(text))
      if (Number.isNaN(date.getTime())) fail('cannot convert to date')
      // Without a time it is the day as it begins here.
      if (!text.includes(':')) date.setHours(0, 0, 0)
      return date
    },
    toDateTime,
    toBoolean: (text) => text.length > 0 && !['false', 'no', '0'].includes(text.toLowerCase()),
    toDecimalNumber: toFloat,
    toNumber(text) {
      const number = Number(bare(text))
      return Number.isNaN(number) ? fail('cannot convert to number') : number
    },
    toFloat,
    toInt,
    toWholeNumber: toInt,
    toSentenceCase,
    toSnakeCase: (text) =>
      text
        .toLowerCase()
        .replace(/[ -]/g, '_')
        .replace(/[\u2000-\u206F\u2E00-\u2E7F\\'!"#$%&()*+,./:;<=>?@[\]^`{|}~]/g, ''),
    toTitleCase: (text) => kit.libraries.titleCase(text),
    urlDecode: (text, isWhole = false) => (isWhole ? decodeURI(text) : decodeURIComponent(text)),
    urlEncode: (text, isWhole = false) => (isWhole ? encodeURI(text) : encodeURIComponent(text)),
    quote(text, quote = '"') {
      const escaped = text.replaceAll('\\', '\\\\').replace(new RegExp(`\\${quote}`, 'g'), `\\${quote}`)
      return quote + escaped + quote
    },
    replaceSpecialChars: (text) => ask('transliterate', text),
    length: (text) => text.length,
    isDomain: (text) => DOMAIN.test(text),
    isEmail,
    isNumeric: (text) =>
      !text.includes(' ') && !Number.isNaN(Number(text)) && !Number.isNaN(Number.parseFloat(text)),
    isUrl: (text) => URL_ALONE.test(text),
    isEmpty: (text) => text === '',
    isNotEmpty: (text) => text !== '',
    toJsonString: (text) => JSON.stringify(text),
    extractEmail: (text) => EMAIL.exec(text)?.[0],
    extractDomain: (text) => (isEmail(text) ? EMAIL.exec(text)?.groups.domain : DOMAIN_IN.exec(text)?.[1]),
    extractUrl: (text) => URL_IN.exec(text)?.[0],
    extractUrlPath: readPath,
    parseJson(text) {
      try {
        return JSON.parse(text)
      } catch {
        return fail(
          text.includes("'") ? "Parsing failed. Check you're using double quotes" : 'Parsing failed',
        )
      }
    },
    base64Encode: (text) => ask('base64', { encode: text }),
    base64Decode: (text) => ask('base64', { decode: text }),
  }

  const demandWhole = (number, name) => {
    if (!Number.isInteger(number)) fail(`${name}() is only callable on integers`)
    return number
  }
  const round = (number, places = 0) => Number(number.toFixed(places))
  const SECONDS_OF_DAY = 86_400
  /** Excel counts days from 1900, which it takes for a leap year. */
  const DAYS_BEFORE_1970 = 25_569

  kinds.Number = {
    format(number, locales = 'en-US', options = {}) {
      try {
        return number.toLocaleString(locales, options)
      } catch {
        return String(number)
      }
    },
    isEven: (number) => demandWhole(number, 'isEven') % 2 === 0,
    isOdd: (number) => Math.abs(demandWhole(number, 'isOdd')) % 2 === 1,
    floor: (number) => Math.floor(number),
    ceil: (number) => Math.ceil(number),
    abs: (number) => Math.abs(number),
    isInteger: (number) => Number.isInteger(number),
    round,
    toBoolean: (number) => number !== 0,
    toInt: (number) => round(number),
    toFloat: (number) => number,
    toDateTime(number, format = 'ms') {
      const { DateTime } = globalThis
      if (format === 'ms') return DateTime.fromMillis(number)
      if (format === 's') return DateTime.fromSeconds(number)
      if (format === 'us') return DateTime.fromMillis(number / 1_000)
      if (format === 'excel') return DateTime.fromSeconds((number - DAYS_BEFORE_1970) * SECONDS_OF_DAY)
      return fail(`Unsupported format '${format}'. toDateTime() supports 'ms', 's', 'us' and 'excel'.`)
    },
  }
}
