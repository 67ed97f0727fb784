/** The credentials with which Google's services are signed in. */
export const GOOGLE_SIGN_IN = ['OAUTH2', 'GOOGLE_SERVICE_ACCOUNT'] as const

/** What must be done at Google for a service, with the scopes that its actions need. */
export function describeSetup(api: string, scopes: string[]): string {
  return (
    `In the Google Cloud console, a project with the ${api} switched on. Either an OAuth client (a credential OAUTH2 with ` +
    'the authorization address https://accounts.google.com/o/oauth2/v2/auth and the token address ' +
    'https://oauth2.googleapis.com/token), or a service account, to which the files are shared, with a key ' +
    `(GOOGLE_SERVICE_ACCOUNT). Scope: ${scopes.join(' ')}.`
  )
}
