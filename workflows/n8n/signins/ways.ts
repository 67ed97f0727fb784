import type { CredentialType } from '../../../db/credentials/types.ts'

/** How requests are signed in with a type of n8n's credentials, and with which of ours. */
export type SignInWay = {
  /** Our types that sign in alike, the one to make first. Without it any that HTTP takes: how n8n does it is unknown. */
  types?: readonly CredentialType[]
  /** The entries of the credential to make that are the same for all. */
  data?: Record<string, string>
  /** The words that tell people what to enter into it. */
  enter: string
  /** Headers that n8n sends along, unless the node sets them. */
  headers?: Record<string, string>
}

/** Why no credential of ours can do what n8n does: "it signs with OAuth 1, ...". */
export type RefusedSignIn = { why: string }

type Headers = Record<string, string>

const alongWith = (headers: Headers | undefined) => (headers ? { headers } : {})

/** A token in the header Authorization: Bearer. `label` is what n8n calls it. */
export function bearer(label: string, headers?: Headers): SignInWay {
  return {
    types: ['HTTP_BEARER', 'HTTP_HEADER', 'OAUTH2', 'OPENAI_COMPATIBLE'],
    enter: `token: the ${label}`,
    ...alongWith(headers),
  }
}

/** A key in a header, behind a prefix. */
export function header(name: string, label: string, prefix = '', headers?: Headers): SignInWay {
  const before = prefix === '' ? '' : `"${prefix}" followed by `
  return {
    types: ['HTTP_HEADER'],
    data: { name },
    enter: `value: ${before}the ${label}`,
    ...alongWith(headers),
  }
}

export function query(name: string, label: string): SignInWay {
  return { types: ['HTTP_QUERY'], data: { name }, enter: `value: the ${label}` }
}

/** Several secrets: `what` is each of them in n8n's words, by its name, perhaps with a prefix in quotes. */
export function several(
  place: 'headers' | 'query',
  what: Record<string, string>,
  headers?: Headers,
): SignInWay {
  const told = Object.entries(what).map(([name, label]) => {
    const [, prefix = '', rest = label] = /^"(.*)" (.*)$/.exec(label) ?? []
    return place === 'headers' ? `${name}: ${prefix}<the ${rest}>` : `${name}=<the ${rest}>`
  })
  return {
    types: ['HTTP_CUSTOM'],
    enter: `${place}: one a line, ${told.join(' and ')}`,
    ...alongWith(headers),
  }
}

/** A user and a password; what begins with `=` is the same for all. */
export function basic(user: string, password: string, headers?: Headers): SignInWay {
  const pairs = Object.entries({ username: user, password })
  const fixed = pairs
    .filter(([, label]) => label.startsWith('='))
    .map(([key, label]) => [key, label.slice(1)])
  const asked = pairs.filter(([, label]) => !label.startsWith('='))
  return {
    types: ['HTTP_BASIC', 'HTTP_HEADER'],
    ...(fixed.length > 0 ? { data: Object.fromEntries(fixed) } : {}),
    enter: asked.map(([key, label]) => `${key}: the ${label}`).join('; '),
    ...alongWith(headers),
  }
}

/** A type that we have for the vendor itself. `others` sign in alike. */
export function ofVendor(
  type: CredentialType,
  enter: string,
  others: CredentialType[],
  more: Partial<SignInWay> = {},
) {
  return { types: [type, ...others], enter, ...more } satisfies SignInWay
}
