import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// It has no types of its own. What is used of it is written down here.
type Provider = {
  callback(): (req: unknown, res: unknown) => void
  on(event: string, tell: (...args: never[]) => void): void
}
type Configuration = Record<string, unknown>

const { default: OidcProvider } = (await import('oidc-provider' as string)) as {
  default: new (issuer: string, configuration: Configuration) => Provider
}

const CLIENT = { clientId: 'perdure', clientSecret: 'a secret: with + and %' }

/**
 * Starts oidc-provider on loopback with one client, that must use PKCE and whose refresh tokens are rotated.
 * `grants` has what was asked of its token endpoint, in order.
 */
export async function startOidc(redirectUri: string, { lifetimeS = 3_600 }: { lifetimeS?: number } = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const grants: { type: string; ok: boolean }[] = []
  const provider = new OidcProvider(url, {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    cookies: { keys: ['a key of the tests'] },
    jwks: undefined,
    pkce: { required: () => true },
    rotateRefreshToken: () => true,
    ttl: {
      AccessToken: lifetimeS,
      AuthorizationCode: 60,
      RefreshToken: 86_400,
      Grant: 86_400,
      Interaction: 600,
      Session: 600,
    },
    features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
  })
  const note = (ok: boolean) => (ctx: { oidc?: { params?: { grant_type?: string } } }) =>
    void grants.push({ type: ctx.oidc?.params?.grant_type ?? '', ok })
  provider.on('grant.success', note(true) as never)
  provider.on('grant.error', note(false) as never)
  server.on('request', provider.callback())

  /** What a person does in a browser: signs in, agrees, and follows where it leads, up to the redirect URI. */
  async function agree(start: string): Promise<string> {
    const jar = new Map<string, string>()
    const visit = async (at: string, init: RequestInit = {}) => {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(at, { redirect: 'manual', ...init, headers: { cookie } })
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') jar.delete(name)
        else jar.set(name, value)
      }
      return response
    }
    let at = start
    for (let hops = 0; hops < 20; hops++) {
      if (at.startsWith(redirectUri)) return at
      let response = await visit(at)
      if (response.status === 200) {
        const page = await response.text()
        const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1] ?? at
        const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1] ?? ''
        const form = new URLSearchParams({ prompt, login: 'ada', password: 'ada' })
        response = await visit(new URL(action, at).href, { method: 'POST', body: form })
      }
      const location = response.headers.get('location')
      if (!location) throw new Error(`${at} responded with ${response.status}: ${await response.text()}`)
      at = new URL(location, at).href
    }
    throw new Error(`too many redirects, the last to ${at}`)
  }

  /** Ends a token from outside, as an account's owner does. */
  async function revoke(token: string): Promise<void> {
    const pair = [CLIENT.clientId, CLIENT.clientSecret].map((text) =>
      new URLSearchParams({ a: text }).toString().slice(2),
    )
    const authorization = `Basic ${Buffer.from(pair.join(':')).toString('base64')}`
    const body = new URLSearchParams({ token })
    const response = await fetch(`${url}/token/revocation`, {
      method: 'POST',
      body,
      headers: { authorization },
    })
    if (!response.ok) throw new Error(`the revocation responded with ${response.status}`)
  }

  return {
    url,
    grants,
    agree,
    revoke,
    /** The data of a credential for its client. */
    data: {
      ...CLIENT,
      authorizationUrl: `${url}/auth?prompt=consent`,
      tokenUrl: `${url}/token`,
      scope: 'openid offline_access',
    },
    /** Where an access token of it is asked for. */
    userUrl: `${url}/me`,
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
