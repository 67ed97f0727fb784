import { askWith, findBase } from './ask.ts'
import { readText } from './chat.ts'
import type { CredentialCheck } from './check.ts'

/** Asks for the credential's `testUrl`. Without one nothing can be tried, which is said. */
export const checkHttp: CredentialCheck = async (credential, tools) => {
  const { testUrl } = credential.data
  if (typeof testUrl !== 'string')
    return 'Its data is complete. Nothing was tried with it: set testUrl to have a request sent'
  await askWith(credential, tools, { url: testUrl, headers: { accept: '*/*' } })
  return `${new URL(testUrl).host} takes it`
}

export const checkNotion: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, 'https://api.notion.com')}/v1/users/me`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.name) ?? 'an integration'}`
}

export const checkAirtable: CredentialCheck = async (credential, tools) => {
  const url = `${findBase(credential, 'https://api.airtable.com')}/v0/meta/whoami`
  const answer = await askWith(credential, tools, { url })
  return `Signed in as ${readText(answer?.email) ?? readText(answer?.id) ?? 'a user'}`
}

/** STS tells every key whose it is: no policy can forbid that. */
export const checkAws: CredentialCheck = async (credential, tools) => {
  const region = String(credential.data.region)
  const usual = `https://sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  const own = { ...credential, data: { ...credential.data, service: 'sts' } }
  const answer = await askWith(own, tools, {
    url: `${findBase(credential, usual)}/`,
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'Action=GetCallerIdentity&Version=2011-06-15',
  })
  const { GetCallerIdentityResult } = Object(answer?.GetCallerIdentityResponse)
  return `Signed in as ${readText(Object(GetCallerIdentityResult).Arn) ?? 'a user of AWS'}`
}
