import { expect, test } from 'vitest'
import { readCredentialData } from '../../../db/credentials/data.ts'
import { type CredentialType, credentialKind } from '../../../db/credentials/types.ts'
import { KEY_SIGN_INS } from '../../../workflows/n8n/signins/keys.ts'
import { OAUTH_SIGN_INS } from '../../../workflows/n8n/signins/oauth.ts'
import { findSignIn } from '../../../workflows/n8n/signins/types.ts'

const OWN = ['httpBasicAuth', 'httpHeaderAuth', 'httpQueryAuth', 'openAiApi', 'notionApi', 'aws', 'googleApi']
const known = [...Object.keys(KEY_SIGN_INS), ...Object.keys(OAUTH_SIGN_INS), ...OWN]

test('each type of n8n that we know names types of ours that sign requests, and what to enter into the first', () => {
  expect(known.length).toBeGreaterThan(200)
  const faults = known.flatMap((name) => {
    const signIn = findSignIn(name)
    if ('why' in signIn || signIn.types === undefined) return [`${name} is refused, or not known`]
    const { types, data = {}, enter } = signIn
    const [first] = types as [CredentialType]
    const entries = Object.keys(credentialKind(first).data.entries)
    const given = Object.keys(data)
    const said = entries.filter((key) => new RegExp(`\\b${key}\\b`).test(enter))
    // Given alone they may lack others, but what is there must be right.
    const wrong = readCredentialData(first, data).problems.filter(({ path }) =>
      given.includes(path.replace('data.', '')),
    )
    return [
      ...types
        .filter((type) => !credentialKind(type).uses.includes('HTTP'))
        .map((type) => `${name}: ${type}`),
      ...given.filter((key) => !entries.includes(key)).map((key) => `${name}: ${key} is no entry`),
      ...wrong.map(({ path, message }) => `${name}: ${path} ${message}`),
      ...(said.length === 0 ? [`${name}: nothing to enter`] : []),
    ]
  })
  expect(faults).toEqual([])
})

test('what Perdure cannot do is refused by name, and of what it does not know any credential may be right', () => {
  expect(findSignIn('httpDigestAuth')).toEqual({ why: expect.stringContaining('Digest') })
  expect(findSignIn('someVendorApi')).toEqual({ enter: expect.stringContaining('someVendorApi') })
  expect(findSignIn('constructor')).toEqual({ enter: expect.stringContaining('constructor') })
  expect(findSignIn('googleSheetsOAuth2Api')).toMatchObject({
    types: ['OAUTH2', 'HTTP_BEARER', 'HTTP_HEADER', 'GOOGLE_SERVICE_ACCOUNT'],
    data: { scope: expect.stringContaining('https://www.googleapis.com/auth/spreadsheets') },
  })
  expect(findSignIn('asanaOAuth2Api')).toMatchObject({
    data: { authentication: 'body', tokenUrl: 'https://app.asana.com/-/oauth_token' },
  })
})
