import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a token server was asked: the fields of the form, and its Authorization header. */
export type Asked = { form: Record<string, string>; authorization: string | undefined }

/** Answers a request to the token endpoint in place of the usual answer. */
type Misbehave = (res: ServerResponse, asked: Asked) => unknown

/**
 * Starts a token server with an API that takes its tokens, on loopback. A refresh token works once: each answer has
 * the next one, `refresh-2` after `refresh-1`, and an access token `access-2`. `/api` takes only the newest access
 * token, and only while `takes` has it.
 */
export async function startTokenServer() {
  const asked: Asked[] = []
  const calls: { method: string; token: string; body: string; status: number }[] = []
  const state = {
    number: 1,
    expiresIn: 3_600 as unknown,
    takes: new Set(['access-1']),
    rotates: true,
    misbehave: undefined as Misbehave | undefined,
    /** Resolves before each answer of the token endpoint. */
    hold: async () => {},
  }

  async function answerToken(req: IncomingMessage, res: ServerResponse) {
    const form = Object.fromEntries(new URLSearchParams(await readBody(req)))
    const one = { form, authorization: req.headers.authorization }
    asked.push(one)
    await state.hold()
    if (state.misbehave) return state.misbehave(res, one)
    const isOwn = form.grant_type !== 'refresh_token' || form.refresh_token === `refresh-${state.number}`
    if (!isOwn) return respond(res, 400, { error: 'invalid_grant' })
    state.number++
    const accessToken = `access-${state.number}`
    state.takes = new Set([accessToken])
    const next = state.rotates ? { refresh_token: `refresh-${state.number}` } : {}
    if (!state.rotates) state.number--
    respond(res, 200, {
      access_token: accessToken,
      token_type: 'Bearer',
      ...next,
      expires_in: state.expiresIn,
    })
  }

  async function answerApi(req: IncomingMessage, res: ServerResponse) {
    const token = req.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const status = state.takes.has(token) ? 200 : 401
    calls.push({ method: req.method!, token, body: await readBody(req), status })
    respond(res, status, status === 200 ? { hello: 'you', token } : { error: 'who are you?' })
  }

  const server = createServer((req, res) => {
    const answer = req.url === '/token' ? answerToken : answerApi
    void answer(req, res).catch(() => res.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    asked,
    calls,
    state,
    /** The data of a credential whose tokens are those that are asked for next. */
    data: {
      clientId: 'client',
      clientSecret: 'client-secret',
      accessToken: 'access-1',
      refreshToken: 'refresh-1',
      authorizationUrl: `${url}/authorize`,
      tokenUrl: `${url}/token`,
    },
    /** Begins anew, as if nothing had been asked. */
    reset() {
      asked.length = 0
      calls.length = 0
      Object.assign(state, {
        ...{ number: 1, expiresIn: 3_600, takes: new Set(['access-1']), rotates: true },
        ...{ misbehave: undefined, hold: async () => {} },
      })
    },
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export function respond(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

async function readBody(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of req) text += part
  return text
}
