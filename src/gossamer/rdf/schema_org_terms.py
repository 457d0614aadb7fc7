"""The terms of version 27.01 of schema.org's JSON-LD context: every one that is more than its own name.

Made by `./gossamer dev schema-org`; not written by hand.
"""

VERSION = "27.01"
SOURCE = "https://github.com/schemaorg/schemaorg/blob/main/data/releases/27.01/schemaorgcontext.jsonld"

#: Terms that stand for something else.
ALIASES = {
    "HTML": "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML",
    "id": "@id",
    "type": "@type",
}

PREFIXES = {
    "csvw": "http://www.w3.org/ns/csvw#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcam": "http://purl.org/dc/dcam/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcmitype": "http://purl.org/dc/dcmitype/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "dctype": "http://purl.org/dc/dcmitype/",
    "doap": "http://usefulinc.com/ns/doap#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "odrl": "http://www.w3.org/ns/odrl/2/",
    "org": "http://www.w3.org/ns/org#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prof": "http://www.w3.org/ns/dx/prof/",
    "prov": "http://www.w3.org/ns/prov#",
    "qb": "http://purl.org/linked-data/cube#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "sh": "http://www.w3.org/ns/shacl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "vann": "http://purl.org/vocab/vann/",
    "void": "http://rdfs.org/ns/void#",
    "xml": "http://www.w3.org/XML/1998/namespace",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

#: Terms whose strings are links (`@id`) or have a datatype: by that, the terms.
TYPED = {
    "@id": """
acquireLicensePage actionableFeedbackPolicy afterMedia archivedAt associatedDisease beforeMedia benefitsSummaryUrl
codeRepository colleague colorSwatch constraintProperty contentUrl correctionsPolicy discussionUrl
diseasePreventionInfo diseaseSpreadStatistics diversityPolicy diversityStaffingReport documentation downloadUrl
duringMedia embedUrl ethicsPolicy gameLocation gettingTestedInfo hasGS1DigitalLink hasMap hasMolecularFunction
healthPlanMarketingUrl image inCodeSet inDefinedTermSet installUrl isBasedOn isBasedOnUrl
isInvolvedInBiologicalProcess isLocatedInSubcellularLocation isPartOf labelDetails layoutImage license logo
mainEntityOfPage map maps masthead merchantReturnLink missionCoveragePrioritiesPolicy newsUpdatesAndGuidelines
noBylinesPolicy originalMediaLink paymentUrl prescribingInfo productReturnLink publicTransportClosuresInfo
publishingPrinciples quarantineGuidelines relatedLink replyToUrl sameAs schoolClosuresInfo screenshot sdLicense
season serviceUrl shippingSettingsLink significantLink significantLinks speakable target targetUrl thumbnailUrl
tourBookingPage trackingUrl travelBans unnamedSourcesPolicy url usageInfo verificationFactCheckingPolicy webFeed
""",
    "http://schema.org/Date": """
applicationDeadline applicationStartDate auditDate availabilityEnds availabilityStarts birthDate commentTime
dateCreated dateDeleted dateIssued dateModified datePosted datePublished dateRead dateVehicleFirstRegistered
deathDate dissolutionDate endDate exceptDate expectedArrivalFrom expectedArrivalUntil expires foundingDate
guidelineDate lastReviewed legislationDate legislationDateVersion merchantReturnDays modelDate orderDate
paymentDueDate previousStartDate priceValidUntil productionDate purchaseDate releaseDate scheduledPaymentDate
scheduledTime sdDatePublished startDate uploadDate validFrom validThrough validUntil vehicleModelDate
""",
}
