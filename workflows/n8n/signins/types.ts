import { getOwn } from '../../json.ts'
import { KEY_SIGN_INS } from './keys.ts'
import { OAUTH_SIGN_INS } from './oauth.ts'
import { ofVendor, type RefusedSignIn, type SignInWay } from './ways.ts'

/** n8n's types for which we have one of our own, or that have no vendor. */
const OWN_SIGN_INS: Record<string, SignInWay> = {
  httpBasicAuth: { types: ['HTTP_BASIC', 'HTTP_HEADER'], enter: 'username and password: as in n8n' },
  httpHeaderAuth: {
    types: ['HTTP_HEADER', 'HTTP_BEARER', 'HTTP_BASIC'],
    enter: 'name and value of the header: as in n8n',
  },
  httpQueryAuth: { types: ['HTTP_QUERY'], enter: 'name and value of the parameter: as in n8n' },
  httpCustomAuth: {
    types: ['HTTP_CUSTOM', 'HTTP_HEADER', 'HTTP_QUERY'],
    enter:
      'headers: those of n8n, one a line as Name: value; query: the qs, as name=value; a body has no place',
  },
  httpTemplatedCustomAuth: {
    types: ['HTTP_CUSTOM', 'HTTP_HEADER', 'HTTP_QUERY'],
    enter:
      'headers: those of n8n with their values filled in, one a line as Name: value; query: the qs, as name=value',
  },
  httpMultipleHeadersAuth: {
    types: ['HTTP_CUSTOM', 'HTTP_HEADER'],
    enter: 'headers: as in n8n, one a line as Name: value',
  },
  openAiApi: ofVendor('OPENAI', 'apiKey: the API Key; organization: the Organization ID', [
    ...(['OPENAI_COMPATIBLE', 'HTTP_BEARER', 'HTTP_HEADER'] as const),
  ]),
  anthropicApi: ofVendor('ANTHROPIC', 'apiKey: the API Key', ['HTTP_HEADER']),
  googlePalmApi: ofVendor('GOOGLE_AI', 'apiKey: the API Key', ['HTTP_QUERY', 'HTTP_HEADER']),
  azureOpenAiApi: ofVendor('AZURE_OPENAI', 'apiKey: the API Key; endpoint: that of the resource', [
    'HTTP_HEADER',
  ]),
  slackApi: ofVendor('SLACK', 'botToken: the Access Token', ['HTTP_BEARER', 'HTTP_HEADER', 'OAUTH2']),
  slackOAuth2Api: ofVendor('SLACK', 'botToken: the token of the user who installed the app (xoxp-)', [
    ...(['HTTP_BEARER', 'HTTP_HEADER'] as const),
  ]),
  discordBotApi: ofVendor('DISCORD', 'botToken: the Bot Token', ['HTTP_HEADER']),
  notionApi: ofVendor('NOTION', 'apiKey: the API Key', ['HTTP_BEARER', 'HTTP_HEADER', 'OAUTH2'], {
    headers: { 'Notion-Version': '2022-02-22' },
  }),
  airtableTokenApi: ofVendor('AIRTABLE', 'apiKey: the Access Token', [
    'HTTP_BEARER',
    'HTTP_HEADER',
    'OAUTH2',
  ]),
  aws: ofVendor('AWS', 'accessKeyId, secretAccessKey and region: as in n8n', []),
  googleApi: ofVendor(
    'GOOGLE_SERVICE_ACCOUNT',
    'clientEmail: the Service Account Email; privateKey and scopes: as in n8n',
    ['OAUTH2', 'HTTP_BEARER'],
  ),
}

const SEVERAL = 'it sends several secrets, and a credential of Perdure has one for a request'
const SESSION = 'it first signs in elsewhere for a token, which a node before it must do here'
const SIGNED = 'it signs each request by rules of its own, which Perdure does not know'
const IN_BODY = 'it puts its key into the body, and Perdure puts none there'

const REFUSED: Record<string, string> = {
  httpDigestAuth: 'it signs in with Digest, which Perdure does not speak',
  oAuth1Api: 'it signs with OAuth 1, which Perdure does not speak',
  trelloOAuth1Api: 'it signs with OAuth 1, which Perdure does not speak',
  twitterOAuth1Api: 'it signs with OAuth 1, which Perdure does not speak',
  ...refuseAll(SEVERAL, [...['citrixAdcApi', 'invoiceNinjaApi', 'motorheadApi', 'qualysApi']]),
  ...refuseAll(SESSION, [
    ...['atlassianServiceAccountApi', 'auth0ManagementApi', 'baserowApi', 'ciscoSecureEndpointApi'],
    ...['ciscoUmbrellaApi', 'crowdStrikeOAuth2Api', 'formIoApi', 'githubAppApi', 'metabaseApi'],
    ...['microsoftEntraServicePrincipalApi', 'salesforceJwtApi', 'venafiTlsProtectDatacenterApi', 'wekanApi'],
    ...['zscalerZiaApi'],
  ]),
  ...refuseAll(SIGNED, [
    ...['awsAssumeRole', 'azureStorageSharedKeyApi', 'customerIoApi', 'ghostAdminApi', 'mindeeInvoiceApi'],
    ...['microsoftAzureCosmosDbSharedKeyApi', 'mindeeReceiptApi'],
  ]),
  ...refuseAll(IN_BODY, ['beeminderApi', 'convertKitApi', 'postHogApi', 'pushoverApi', 'uptimeRobotApi']),
}

function refuseAll(why: string, types: string[]): Record<string, string> {
  return Object.fromEntries(types.map((type) => [type, why]))
}

const KNOWN: Record<string, SignInWay> = { ...KEY_SIGN_INS, ...OAUTH_SIGN_INS, ...OWN_SIGN_INS }

/** Whether it is one of n8n's types of credentials that we know. */
export function isKnownType(type: string): boolean {
  return Object.hasOwn(KNOWN, type) || Object.hasOwn(REFUSED, type)
}

/** How a type of n8n signs requests in. For an unknown one any credential for HTTP may be right. */
export function findSignIn(type: string): SignInWay | RefusedSignIn {
  const why = getOwn(REFUSED, type)
  if (why !== undefined) return { why }
  const enter = `what the service asks for: how n8n's "${type}" signs in is not known here`
  return getOwn(KNOWN, type) ?? { enter }
}
